"""Wheels to files of an image: the one importer of `installer`.

Only its reading is used. Scripts and RECORD are written here, so that the bytes of a layer
depend on the wheels and not on which version of a library unpacked them.
"""

import base64
import hashlib
import posixpath
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

import installer
from installer.exceptions import InstallerError
from installer.records import InvalidRecordEntry, RecordEntry
from installer.sources import WheelFile
from installer.utils import Scheme

from sandbox.errors import ImageFault
from sandbox.runtime.image.entry import Entry, with_parents
from sandbox.runtime.image.layout import BIN, DIST_PACKAGES, PYTHON, inside

if TYPE_CHECKING:
    from installer.destinations import WheelDestination

BROKEN = (
    *(ValueError, KeyError, OSError, zipfile.BadZipFile),
    *(InstallerError, InvalidRecordEntry),
)
SCRIPT = """\
#!/usr/bin/python3
import sys
from {module} import {first}
if __name__ == "__main__":
    sys.argv[0] = sys.argv[0].removesuffix(".exe")
    sys.exit({attr}())
"""
SCHEMES = {
    "purelib": DIST_PACKAGES,
    "platlib": DIST_PACKAGES,
    "scripts": BIN,
    "data": "usr/local",
    "headers": f"usr/local/include/{PYTHON}",
}


def wheels_entries(wheels: Iterable[tuple[str, Path]]) -> list[Entry]:
    """The files of these wheels, given as (file name, where it is stored)."""
    found = []
    for name, path in wheels:
        try:
            found.extend(_install(name, path))
        except BROKEN as e:
            raise ImageFault(f"{name} is not a readable wheel: {e}", retry=False) from e
    return list(with_parents(found).values())


def _install(name: str, path: Path) -> list[Entry]:
    into = _Entries()
    # A wheel that ships bytecode warns; ours is compiled by the image's own python anyway.
    with warnings.catch_warnings(), zipfile.ZipFile(path) as archive:
        warnings.simplefilter("ignore", RuntimeWarning)
        archive.filename = name  # the store's name is a hash, `installer` reads name and version
        installer.install(
            WheelFile(archive), cast("WheelDestination", into), {"INSTALLER": b"stillroom\n"}
        )
    return into.entries


class _Entries:
    """Takes what `installer` reads out of one wheel: a WheelDestination, by shape."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write_script(
        self, name: str, module: str, attr: str, section: Literal["console", "gui"]
    ) -> RecordEntry:
        del section
        text = SCRIPT.format(module=module, first=attr.split(".", maxsplit=1)[0], attr=attr)
        return self._add(f"{BIN}/{inside(name)}", text.encode(), executable=True)

    def write_file(
        self,
        scheme: Scheme,
        path: object,
        stream: BinaryIO,
        is_executable: bool,  # noqa: FBT001
    ) -> RecordEntry:
        data = stream.read()
        if scheme == "scripts" and data.startswith(b"#!python"):
            data = b"#!/usr/bin/python3" + data[data.find(b"\n") :]
        place = f"{SCHEMES[scheme]}/{_relative(str(path))}"
        return self._add(place, data, executable=is_executable or scheme == "scripts")

    def finalize_installation(
        self,
        scheme: Scheme,
        record_file_path: str,
        records: Iterable[tuple[Scheme, RecordEntry]],
    ) -> None:
        del scheme, records
        lines = [_record_line(e) for e in sorted(self.entries, key=lambda e: e.path)]
        text = "".join([*lines, f"{record_file_path},,\n"])
        self._add(f"{DIST_PACKAGES}/{record_file_path}", text.encode(), executable=False)

    def _add(self, path: str, data: bytes, *, executable: bool) -> RecordEntry:
        # Times in a wheel are local times of whoever built it: none of them is kept.
        self.entries.append(Entry(path, "file", 0o755 if executable else 0o644, data=data))
        return RecordEntry(path, None, None)


def _relative(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"it would write outside of its folder: {path!r}")
    return posixpath.normpath(path)


def _record_line(entry: Entry) -> str:
    path = posixpath.relpath(entry.path, DIST_PACKAGES)
    digest = base64.urlsafe_b64encode(hashlib.sha256(entry.data).digest()).decode().rstrip("=")
    quoted = '"' + path.replace('"', '""') + '"' if set(path) & set(',"\n') else path
    return f"{quoted},sha256={digest},{len(entry.data)}\n"
