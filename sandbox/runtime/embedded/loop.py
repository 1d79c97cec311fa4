"""A file as a block device that vanishes with its last mount."""

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_CONTROL = "/dev/loop-control"
_GET_FREE, _CONFIGURE = 0x4C82, 0x4C0A
_AUTOCLEAR = 4
_CONFIG_BYTES, _FLAGS_AT = 304, 60
"""struct loop_config: fd, block size, struct loop_info64, reserved; linux/loop.h."""
_TRIES = 20


def available() -> bool:
    return os.access(_CONTROL, os.R_OK | os.W_OK)


@contextmanager
def attached(image: str) -> Iterator[str]:
    """The path of a device that shows the file: mount it in the block. Raises OSError."""
    backing = os.open(image, os.O_RDWR | os.O_CLOEXEC)
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        number, device = _attach(control, backing)
        try:
            yield f"/dev/loop{number}"
        finally:
            os.close(device)
    finally:
        os.close(control)
        os.close(backing)


def _attach(control: int, backing: int) -> tuple[int, int]:
    config = bytearray(_CONFIG_BYTES)
    struct.pack_into("I", config, 0, backing)
    struct.pack_into("I", config, _FLAGS_AT, _AUTOCLEAR)
    for _ in range(_TRIES):
        number = fcntl.ioctl(control, _GET_FREE)
        device = os.open(f"/dev/loop{number}", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(device, _CONFIGURE, bytes(config))
        except OSError as e:
            os.close(device)
            if e.errno != errno.EBUSY:  # somebody else was quicker
                raise
        else:
            return number, device
    raise OSError(errno.EBUSY, "no free loop device")
