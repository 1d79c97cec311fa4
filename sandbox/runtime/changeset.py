"""A box's changes as a file: an OCI layer, the same bytes for the same changes.

Numbers of owners as the box sees them, times to the nanosecond, hard links among the changed
files. Sockets and extended attributes are left out.
"""

import hashlib
import os
import stat
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO, cast

from sandbox.errors import RuntimeFault
from sandbox.runtime import upper
from sandbox.runtime.freeze.axis import Axis, file_time_ns
from sandbox.runtime.spec import BoxSpec, Snapshot

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
_BLOCK = 1 << 20
_KINDS = {
    stat.S_IFDIR: tarfile.DIRTYPE,
    stat.S_IFLNK: tarfile.SYMTYPE,
    stat.S_IFIFO: tarfile.FIFOTYPE,
}


def write(
    folder: int,
    lowers: Sequence[str],
    spec: BoxSpec,
    tar: Path,
    *,
    leave_out: frozenset[str] = frozenset(),
    root: int = 0,
    axis: Axis | None = None,
) -> Snapshot:
    """Write what differs from `lowers` to the file `tar`.

    `folder`: a descriptor of the upper folder. `leave_out`: paths that are no change, as
    "/workspace". `root`: the owner on the disk that is root in the box. `axis`: of its own clock, by
    which files are dated.
    Raises RuntimeFault when the files together claim more than the disk limit: a file with holes
    can say it has any size.
    """
    with tar.open("wb") as f:
        hashed = _Hashed(f)
        sink = cast("IO[bytes]", hashed)  # it is written to; that is all that is asked of it
        with tarfile.open(
            fileobj=sink,
            mode="w|",
            format=tarfile.PAX_FORMAT,
            encoding="utf-8",
            errors="surrogateescape",
        ) as out:
            writer = _Writer(out, spec.limits.disk_mib << 20, root, axis)
            for entry in upper.walk(folder, lowers):
                if "/" + os.fsdecode(entry.path) not in leave_out or not _bare(entry):
                    writer.add(entry)
    return Snapshot(
        image=spec.image.digest, seeds=seed_names(spec), tar=tar, sha256=hashed.sha256.hexdigest()
    )


def check(spec: BoxSpec) -> Path | None:
    """The tar of the snapshot a box is to start with. Raises RuntimeFault if it does not fit."""
    snapshot = spec.snapshot
    if snapshot is None:
        return None
    if (snapshot.image, snapshot.seeds) != (spec.image.digest, seed_names(spec)):
        raise RuntimeFault(
            f"the snapshot {snapshot.tar} is of another image or repository",
            hint="give the box the image and the seeds the snapshot was taken with",
            retry=False,
        )
    try:
        with snapshot.tar.open("rb") as f:
            found = hashlib.file_digest(f, "sha256").hexdigest()
    except OSError as e:
        raise RuntimeFault(f"cannot read the snapshot {snapshot.tar}: {e}", retry=False) from e
    if found != snapshot.sha256:
        raise RuntimeFault(
            f"refused: the snapshot {snapshot.tar} has sha256 {found}, not {snapshot.sha256}",
            hint="it was changed since it was taken",
            retry=False,
        )
    return snapshot.tar


def seed_names(spec: BoxSpec) -> tuple[str, ...]:
    return tuple(seed.folder.name for seed in spec.seeds)


def split(tar: Path, plain: IO[bytes]) -> list[str]:
    """Write `tar` without its whiteouts to `plain`; returns the absolute paths that they remove.

    A folder that hides what was in it is among them: remove first, then unpack.
    """
    removed = []
    with (
        tarfile.open(tar, "r:", encoding="utf-8", errors="surrogateescape") as source,
        tarfile.open(
            fileobj=plain,
            mode="w|",
            format=tarfile.PAX_FORMAT,
            encoding="utf-8",
            errors="surrogateescape",
        ) as out,
    ):
        for member in source:
            path = PurePosixPath("/", member.name)
            if path.name == OPAQUE:
                removed.append(str(path.parent))
            elif path.name.startswith(WHITEOUT):
                removed.append(str(path.with_name(path.name.removeprefix(WHITEOUT))))
            else:
                out.addfile(member, source.extractfile(member) if member.isreg() else None)
    return removed


def _bare(entry: upper.Entry) -> bool:
    """Nothing but a place to mount on."""
    mode = entry.stat.st_mode
    return stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and not entry.stat.st_size)


class _Writer:
    def __init__(self, out: tarfile.TarFile, most: int, root: int, axis: Axis | None) -> None:
        self._out = out
        self._left = self._most = most
        self._root = root
        self._axis = axis
        self._real_ns = file_time_ns()
        self._names: dict[tuple[int, int], str] = {}
        """Files with several names: the first that was written."""

    def add(self, entry: upper.Entry) -> None:
        name = os.fsdecode(entry.path)
        if entry.name.startswith(WHITEOUT.encode()) and not entry.removed:
            raise RuntimeFault(
                f"the box has a file that is called like a whiteout: /{name}; no snapshot",
                hint=f"a layer has no other way to say that {name!r} is not one: rename it",
                retry=False,
            )
        if entry.removed:
            if entry.below is not None:
                parent, _, last = name.rpartition("/")
                self._out.addfile(_empty(f"{parent}/{WHITEOUT}{last}".lstrip("/")))
            return
        if entry.same:
            return
        info = self._info(name, entry.stat)
        kind = stat.S_IFMT(entry.stat.st_mode)
        if kind == stat.S_IFREG:
            self._add_file(info, entry)
        elif kind in _KINDS:
            info.type = _KINDS[kind]
            if kind == stat.S_IFLNK:
                info.linkname = os.fsdecode(entry.link())
            self._out.addfile(info)

    def _info(self, name: str, found: os.stat_result) -> tarfile.TarInfo:
        info = tarfile.TarInfo(name)
        info.mode = stat.S_IMODE(found.st_mode)
        info.uid, info.gid = found.st_uid - self._root, found.st_gid - self._root
        when = found.st_mtime_ns
        if self._axis:
            when = self._axis.shown_ns(when, self._real_ns)
        seconds, rest = divmod(when, 1_000_000_000)
        info.mtime = seconds
        if rest:
            info.pax_headers = {"mtime": f"{seconds}.{rest:09}"}
        return info

    def _add_file(self, info: tarfile.TarInfo, entry: upper.Entry) -> None:
        key = entry.stat.st_dev, entry.stat.st_ino
        if entry.stat.st_nlink > 1 and key in self._names:
            info.type, info.linkname = tarfile.LNKTYPE, self._names[key]
            self._out.addfile(info)
            return
        self._names[key] = info.name
        with os.fdopen(entry.open(), "rb") as f:
            info.size = os.fstat(f.fileno()).st_size
            self._left -= info.size
            if self._left < 0:
                raise RuntimeFault(
                    f"the box's files claim more than {self._most >> 20} MiB: no snapshot",
                    hint="limits.disk_mib",
                    retry=False,
                )
            self._out.addfile(info, f)


def _empty(name: str) -> tarfile.TarInfo:
    return tarfile.TarInfo(name)


class _Hashed:
    """A file that is hashed while it is written."""

    def __init__(self, f: IO[bytes]) -> None:
        self._f = f
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return self._f.write(data)
