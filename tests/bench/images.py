"""How long an image takes from nothing, and whether it comes out the same.

    .venv/bin/python tests/bench/images.py [NAME]

Builds from the lock in an empty store, downloads included, then ensures it again.
"""

import sys
import tempfile
import time
from pathlib import Path

from sandbox.formats import jsonfile
from sandbox.formats.home import bundled_home
from sandbox.model.image import ImageLock
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.store import Store


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "python-3.11"
    path = bundled_home() / "repos" / "images" / f"{name}.lock.json"
    lock = jsonfile.load(path, ImageLock)
    with tempfile.TemporaryDirectory() as folder:
        for word in ("cold", "warm"):
            began = time.monotonic()
            image = ensure(Store(Path(folder)), lock, lambda *_: None)
            assert image.digest == lock.config_digest
            print(f"{word} {name} {time.monotonic() - began:.1f} s {image.digest}")


if __name__ == "__main__":
    main()
