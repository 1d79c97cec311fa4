"""What this machine lacks: a reason to skip a test, but not in CI, where all of them must run."""

import os
from typing import NoReturn

import pytest


def absent(why: object, *, module: bool = False) -> NoReturn:
    """`module`: it is the whole module that cannot be run."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"in CI this must run: {why}", pytrace=False)
    pytest.skip(str(why), allow_module_level=module)
