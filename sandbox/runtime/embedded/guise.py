"""What a box with a clock of its own sees of the machine, beside the clock: files over files.

What they say is `freeze.machine`'s, and here the boot_id as well. Not seen to: `uname`, which only
the kernel answers.
"""

import os
from collections.abc import Iterable, Mapping

from sandbox.runtime.embedded import kernel
from sandbox.runtime.freeze import machine

BOOT_ID = "5717100b-0000-4000-8000-000000000000"
"""Of every box alike."""
_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
_PLACE = "guise"


def files(cpus: int, booted_ns: int) -> dict[str, str]:
    """By path. `booted_ns`: on the box's clock."""
    return {**machine.texts(cpus, booted_ns), _BOOT_ID_FILE: f"{BOOT_ID}\n"}


def dress(stage: str, contents: Mapping[str, str] | None) -> None:
    """Lay the files over what is staged; who calls this is whom they are to belong to."""
    if contents is None:
        return
    place = f"{stage}/{_PLACE}"
    os.mkdir(place)
    texts = {text: f"{place}/{i}" for i, text in enumerate(_distinct(contents.values()))}
    for text, path in texts.items():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o444))
        kernel.write(path, text)
    kernel.bind(place, place)
    kernel.remount_read_only(place, kernel.MS_NOSUID | kernel.MS_NODEV)
    for name, text in contents.items():
        target = f"{stage}{name}"
        if os.path.exists(target):
            kernel.bind(texts[text], target)  # read-only as what it is taken from


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
