"""Files of a box that have no name any more, but are open: they take room that no folder shows."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress


def unnamed_bytes(processes: Iterable[int], upper: int) -> int:
    """What they take on the disk of `upper`, a descriptor of the folder of the box's changes.

    Not seen: what is only mapped, or under way in a socket.
    """
    disks = {os.fstat(upper).st_dev}
    found: dict[tuple[int, int], int] = {}
    for pid in processes:
        # A process may end, or close a file, while it is looked at.
        with suppress(OSError):
            disks.add(os.stat(f"/proc/{pid}/root").st_dev)
            for number in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    file = os.stat(f"/proc/{pid}/fd/{number}")
                    if not file.st_nlink and stat.S_ISREG(file.st_mode) and file.st_dev in disks:
                        found[file.st_dev, file.st_ino] = file.st_blocks * 512
    return sum(found.values())
