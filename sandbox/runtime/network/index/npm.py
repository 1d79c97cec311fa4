"""npm's registry: packuments, whole and abbreviated, single versions, and tarballs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sandbox.model.index import NpmPin
from sandbox.runtime.network.index.answers import (
    answered,
    file_answer,
    json_bytes,
    refusal,
    refused,
)
from sandbox.runtime.network.index.names import is_release, semver_key
from sandbox.runtime.network.message import Request, Response

HOSTS = ("registry.npmjs.org", "registry.yarnpkg.com")
ABBREVIATED = "application/vnd.npm.install-v1+json"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Npm:
    packages: Mapping[str, Sequence[NpmPin]]
    """By name, the lowest version first."""
    files: Mapping[str, NpmPin]
    """By path in the registry."""
    date: str
    """The one date of everything."""
    blob: Callable[[str], Path]
    lock: str

    def answer(self, request: Request) -> Response:
        path = unquote(urlsplit(request.url).path)
        if pin := self.files.get(path):
            blob = self.blob(pin.sha256)
            return file_answer(blob, pin.sha256, request, "application/octet-stream")
        name, version = _split(path)
        pins = self.packages.get(name)
        if pins is None:
            return self._refuse(name or request.url)
        if version is None:
            return self._packument(pins, abbreviated=ABBREVIATED in request.header("Accept"))
        version = dist_tags(pins).get(version, version)
        found = next((p for p in pins if p.version == version), None)
        if found is None:
            return self._refuse(f"{name}@{version}")
        return answered(json_bytes(_manifest(found)), JSON)

    def _packument(self, pins: Sequence[NpmPin], *, abbreviated: bool) -> Response:
        found: dict[str, Any] = {
            "name": pins[0].name,
            "modified": self.date,
            "dist-tags": dist_tags(pins),
            "versions": {p.version: _manifest(p) for p in pins},
        }
        if abbreviated:
            return answered(json_bytes(found), ABBREVIATED)
        times = dict.fromkeys(("created", "modified", *found["versions"]), self.date)
        return answered(json_bytes(found | {"_id": pins[0].name, "time": times}), JSON)

    def _refuse(self, what: str) -> Response:
        return refused(json_bytes({"error": refusal(what, self.lock, "npm")}), JSON)


def npm(pins: Sequence[NpmPin], pin: str, blob: Callable[[str], Path], lock: str) -> Npm:
    packages: dict[str, list[NpmPin]] = {}
    for one in sorted(pins, key=lambda p: (p.name, semver_key(p.version))):
        packages.setdefault(one.name, []).append(one)
    files = {unquote(urlsplit(p.url).path): p for p in pins}
    return Npm(packages, files, pin.replace("Z", ".000Z"), blob, lock)


def dist_tags(pins: Sequence[NpmPin]) -> dict[str, str]:
    """As recorded; `latest` always is one: the highest release unless the registry said another."""
    ordered = sorted(pins, key=lambda p: semver_key(p.version))
    latest = [p for p in ordered if is_release(p.version)] or ordered
    tags = {"latest": latest[-1].version}
    return tags | {tag: p.version for p in ordered for tag in p.tags}


def _manifest(pin: NpmPin) -> dict[str, Any]:
    dist = {"tarball": pin.url, "integrity": pin.integrity, "shasum": pin.shasum}
    mine = {"name": pin.name, "version": pin.version, "dist": dist}
    return {**pin.manifest, **mine, "_id": f"{pin.name}@{pin.version}"}


def _split(path: str) -> tuple[str, str | None]:
    """/name, /@scope/name, either with /version: the name, and the version or tag."""
    parts = path.strip("/").split("/")
    own = 2 if parts[0].startswith("@") else 1
    name, rest = "/".join(parts[:own]), parts[own:]
    return (name, rest[0] if rest else None) if len(rest) <= 1 else ("", None)
