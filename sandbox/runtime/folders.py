"""Going through folders that somebody else may change meanwhile, with one descriptor at any depth.

Standard library only: the process that makes boxes uses it too.
"""

import os

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A pipe that has taken a file's place must not keep us waiting."""


def names(folder: int | bytes) -> list[bytes]:
    """What is in it, the last one first: take the next one with `pop`."""
    with os.scandir(folder) as found:
        return sorted((os.fsencode(e.name) for e in found), reverse=True)


def down(at: int, name: bytes) -> int:
    """Exchange `at` for a descriptor of the folder `name` in it. Never through a link.

    When this raises OSError, `at` is still open, and the caller's.
    """
    below = os.open(name, FOLDER, dir_fd=at)
    os.close(at)
    return below


def up(at: int, wanted: os.stat_result) -> int:
    """Exchange `at` for the folder above, if it is still the one that we came from; else OSError."""
    above = os.open("..", FOLDER, dir_fd=at)
    found = os.fstat(above)
    if (found.st_dev, found.st_ino) != (wanted.st_dev, wanted.st_ino):
        os.close(above)
        raise OSError("folders were moved while they were read")
    os.close(at)
    return above
