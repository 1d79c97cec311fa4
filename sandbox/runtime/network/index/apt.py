"""Debian's archive: a Release, one Packages a suite, component and architecture, and the pool.

Nothing is signed: Debian's key is not ours, and a key of ours would be one more thing to put into a
box. The box's own apt is told to trust this archive instead (`clients`); what it gets was checked
against the lock's hashes, and nobody sits between the box and its proxy. Packages is served as it
is, not compressed: the bytes of a compressor change with its version, and the file is small.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sandbox.model.index import AptPin, moment
from sandbox.runtime.network.index.answers import TEXT, answered, file_answer, not_listed
from sandbox.runtime.network.message import Request, Response

HOSTS = ("deb.debian.org",)
ROOT = "/debian/"
SIGNED = ("InRelease", "Release.gpg")
"""What apt always asks for first: that they are not there is no refusal."""


@dataclass(frozen=True, slots=True)
class Apt:
    dists: Mapping[str, bytes]
    """By path below dists/, `by-hash` too."""
    pool: Mapping[str, AptPin]
    """By path within the archive."""
    blob: Callable[[str], Path]
    lock: str

    def answer(self, request: Request) -> Response:
        path = unquote(urlsplit(request.url).path).removeprefix(ROOT)
        if (found := self.dists.get(path)) is not None:
            return answered(found, TEXT)
        if pin := self.pool.get(path):
            kind = "application/vnd.debian.binary-package"
            return file_answer(self.blob(pin.sha256), pin.sha256, request, kind)
        if path.rpartition("/")[2] in SIGNED:
            return answered(b"This archive is not signed.\n", TEXT, status=404)
        return not_listed(path.rpartition("/")[2], self.lock, "apt")


def apt(pins: Sequence[AptPin], arch: str, pin: str, blob: Callable[[str], Path], lock: str) -> Apt:
    dists: dict[str, bytes] = {}
    for suite in sorted({p.suite for p in pins}):
        dists |= _suite(suite, [p for p in pins if p.suite == suite], arch, pin)
    return Apt(dists, {p.filename: p for p in pins}, blob, lock)


def _suite(suite: str, pins: Sequence[AptPin], arch: str, pin: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    components = sorted({p.component for p in pins})
    for component in components:
        mine = sorted(
            (p for p in pins if p.component == component), key=lambda p: (p.name, p.version, p.arch)
        )
        text = "".join(f"{p.stanza.rstrip()}\n\n" for p in mine)
        files[f"{component}/binary-{arch}/Packages"] = text.encode()
    found = {f"dists/{suite}/{path}": data for path, data in files.items()}
    for path, data in files.items():
        folder = path.rpartition("/")[0]
        found[f"dists/{suite}/{folder}/by-hash/SHA256/{_sha256(data)}"] = data
    found[f"dists/{suite}/Release"] = _release(suite, components, arch, pin, files)
    return found


def _release(
    suite: str, components: Sequence[str], arch: str, pin: str, files: Mapping[str, bytes]
) -> bytes:
    lines = [
        "Origin: Debian",
        "Label: Debian",
        f"Suite: {suite}",
        f"Codename: {re.split('[-/]', suite)[0]}",
        f"Date: {format_datetime(moment(pin)).replace('+0000', 'UTC')}",
        "Acquire-By-Hash: yes",
        "No-Support-for-Architecture-all: Packages",
        f"Architectures: {arch}",
        f"Components: {' '.join(components)}",
        "Description: Frozen package index",
        "SHA256:",
        *(f" {_sha256(data)} {len(data)} {path}" for path, data in sorted(files.items())),
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
