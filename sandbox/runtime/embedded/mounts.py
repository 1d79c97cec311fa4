"""What of the host a box is asked to show: files and folders, read-only.

A box can read where a mount of its lies within its file system (/proc/self/mountinfo), and that is
not its business. So a file is copied into memory of the box's, where its path is nobody's: those
that we mount are small, and are not written to any more. A folder stays where it is, as a socket in
it must: whoever cares gives a folder whose path tells nothing.
"""

import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager

from sandbox.runtime.embedded import kernel

COPIED_BYTES = 4 << 20
"""A file that is larger is shown where it is."""
_PLACE = "mounts"
_ROOM = 1 << 16
"""What each file may take beside its bytes: a page at its end, and its name."""


def views(
    stage: str,
    wanted: list[tuple[str, str]],
    user_namespace: int | None,
    as_owner: Callable[[], AbstractContextManager[None]],
) -> list[tuple[int, str]]:
    """Trees for these (source on the host, path in the box), and their places; see `kernel.attach`.

    `stage`: a folder of the box's for what is being made. `as_owner`: whom copies belong to.
    """
    copies = {source: "" for source, _ in wanted if _is_small(source)}
    if copies:
        place = f"{stage}/{_PLACE}"
        os.mkdir(place)
        room = sum(os.stat(source).st_size + _ROOM for source in copies)
        flags = kernel.MS_NOSUID | kernel.MS_NODEV
        kernel.mount("tmpfs", place, "tmpfs", flags, f"size={room},mode=755")
        copies = {source: f"{place}/{i}" for i, source in enumerate(copies)}
        for source, copy in copies.items():
            _copy(source, copy, as_owner)
    return [
        (kernel.detached(copies[source], None), target)
        if source in copies
        else (kernel.detached(source, user_namespace), target)
        for source, target in wanted
    ]


def _is_small(path: str) -> bool:
    """What is not there is said when it is to be mounted."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= COPIED_BYTES


def _copy(source: str, target: str, as_owner: Callable[[], AbstractContextManager[None]]) -> None:
    """Read as who we are, made as the owner; by the kernel: our own memory is the box's, too."""
    read = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with as_owner():
            write = os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC)
        try:
            while os.sendfile(write, read, None, COPIED_BYTES):
                pass
            with as_owner():
                os.fchmod(write, stat.S_IMODE(os.fstat(read).st_mode))
        finally:
            os.close(write)
    finally:
        os.close(read)
