"""`python -P -m sandbox`: the same as `stillroom`."""

import sys

from sandbox.cli import main

sys.exit(main())
