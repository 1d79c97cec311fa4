"""Homes: folders with task_specs/, verifiers/ and repos/. One comes with the program."""

from pathlib import Path

import sandbox


def bundled_home() -> Path:
    """The data that came with the program: in a wheel, or in a checkout."""
    package = Path(sandbox.__file__).resolve().parent
    bundled = package / "_bundled"
    return bundled if bundled.is_dir() else package.parent


def locate(home: Path, relative: str) -> Path:
    """A file of this home, or of the one that comes with the program: images, runners."""
    own = home / relative
    return own if own.exists() else bundled_home() / relative
