"""Reading a tar file in a process that pays for every page it touches."""

import os
import tarfile
from collections.abc import Iterator
from typing import IO, cast


def members(archive: int) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """What is in a tar file, one after the other, without remembering it."""
    with (
        os.fdopen(archive, "rb", closefd=False) as f,
        tarfile.open(fileobj=f, mode="r:", encoding="utf-8", errors="surrogateescape") as tar,
    ):
        tar.extraction_filter = lambda member, _: member
        for member in tar:
            yield tar, member
            tar.members = []  # type: ignore[attr-defined]  # it would remember them all


def send(tar: tarfile.TarFile, member: tarfile.TarInfo, target: int) -> None:
    """The content, in the kernel: buffers of our own would cost more than the file."""
    source = cast("IO[bytes]", tar.fileobj).fileno()
    at, end = member.offset_data, member.offset_data + member.size
    while at < end:
        sent = os.sendfile(target, source, at, end - at)
        if not sent:
            raise OSError(f"{member.name}: the archive is too short")
        at += sent
