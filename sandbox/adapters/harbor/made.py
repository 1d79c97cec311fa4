"""What a Dockerfile's steps leave in a box: the working directory's files, and all the others."""

import tarfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from sandbox.adapters.harbor.report import Report
from sandbox.formats.digest import Entry
from sandbox.runtime.image.entry import Entry as LayerEntry

_LEFT_OUT = (
    "etc/apt", "root/.cache", "var/cache", "var/lib/apt", "var/log/apt", "var/log/lastlog",
    "var/log/faillog", "run", "tmp/stillroom-wanted", "proc", "sys", "dev", "oracle", "solution",
)  # fmt: skip
"""What no step means to leave."""
_USUAL_MODES = frozenset({0o644, 0o755, 0o664, 0o775, 0o666, 0o777})
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What the steps left."""

    tree: tuple[Entry, ...]
    """In the working directory: it is pinned as a repository."""
    rest: tuple[LayerEntry, ...]
    """Elsewhere: a layer of the image."""


@dataclass(slots=True)
class _Reading:
    archive: tarfile.TarFile
    inner: str
    """The working directory, as an archive names it."""
    tree: list[Entry] = field(default_factory=list)
    rest: list[LayerEntry] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    special: list[str] = field(default_factory=list)

    def take(self, member: tarfile.TarInfo, name: str) -> None:
        path = name[len(self.inner) :] if f"{name}/".startswith(self.inner) else ""
        parts = path.split("/")
        if PurePosixPath(name).name.startswith(".wh."):
            self.removed.append(name.replace(".wh.", ""))
        elif parts[0] == ".git":
            return  # made anew
        elif not (member.isreg() or member.issym() or member.islnk() or member.isdir()):
            self.special.append(name)
        elif path and not member.isdir() and ".git" not in parts:
            self.tree.append(_tree_entry(self.archive, member, path))
            if member.isreg() and member.mode & 0o7777 not in _USUAL_MODES:
                self.modes.append(f"{name} ({member.mode & 0o7777:o})")
        else:
            self.rest.append(_layer_entry(self.archive, member, name))
        if member.uid:
            self.owners.append(name)

    def tell(self, report: Report, where: str) -> None:
        if self.removed:
            report.dropped("removed files", f"they stay: {_listed(self.removed)}", where)
        if self.special:
            note = f"no files, folders or links: {_listed(self.special)}"
            report.dropped("special files", note, where)
        if self.modes:
            note = "of the working directory only the right to be run is kept"
            report.changed("modes", f"{note}: {_listed(self.modes)}", where)
        if self.owners:
            note = f"files are root's, and somebody else's there: {_listed(self.owners)}"
            report.changed("owners", note, where)


def read_made(tar: Path, workdir: str, report: Report, where: str) -> Made:
    """What a snapshot of the box holds. What of it has no place here is in the report."""
    with tarfile.open(tar, encoding="utf-8", errors="surrogateescape") as archive:
        reading = _Reading(archive, workdir.strip("/") + "/")
        for member in archive:
            name = member.name.strip("/")
            if "__pycache__" in name.split("/"):
                continue
            if not any(name == left or name.startswith(f"{left}/") for left in _LEFT_OUT):
                reading.take(member, name)
    reading.tell(report, where)
    return Made(tree=tuple(sorted(reading.tree)), rest=tuple(reading.rest))


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"/{name}" for name in sorted(names)[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _tree_entry(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> Entry:
    if member.issym():
        return Entry(path, "link", member.linkname.encode("utf-8", "surrogateescape"))
    return Entry(path, "exec" if member.mode & 0o100 else "file", _data(archive, member))


def _layer_entry(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> LayerEntry:
    mtime = int(member.mtime)
    if member.isdir():
        return LayerEntry(name, "folder", member.mode, mtime)
    if member.issym():
        return LayerEntry(name, "symlink", 0o777, mtime, target=member.linkname)
    return LayerEntry(name, "file", member.mode, mtime, _data(archive, member))


def _data(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    f = archive.extractfile(member)
    return f.read() if f else b""
