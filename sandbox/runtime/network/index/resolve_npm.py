"""What npm would take from its registry."""

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sandbox.errors import NetworkFault
from sandbox.formats.indexfile import ROOTS
from sandbox.model.index import NpmPin
from sandbox.runtime.fetch import download, fetch, fetch_json
from sandbox.runtime.network.index.npm import ABBREVIATED
from sandbox.runtime.store import Store

NPM_SECONDS = 300
OS, CPU, LIBC = "linux", "x64", "glibc"
MANIFEST = (
    *("dependencies", "optionalDependencies", "peerDependencies", "peerDependenciesMeta"),
    *("bundleDependencies", "bundledDependencies", "acceptDependencies"),
    *("bin", "directories", "engines", "os", "cpu", "libc"),
    *("hasInstallScript", "_hasShrinkwrap", "deprecated"),
)
"""What installing a version needs of what the registry says of it; the rest is for people."""
SCRIPTS = ("preinstall", "install", "postinstall")


@dataclass(frozen=True, slots=True, order=True)
class Locked:
    """A package of package-lock.json."""

    name: str
    version: str
    integrity: str


def npm_pins(store: Store, scratch: Path, packages: Sequence[str]) -> Iterator[NpmPin]:
    """What is for other machines is left out, as npm does when it installs."""
    if not packages:
        return
    documents: dict[str, Any] = {}
    for locked in sorted(set(locked_packages(_lock(scratch, packages)))):
        if locked.name not in documents:
            url = f"{ROOTS['npm']}{quote(locked.name, safe='@')}"
            documents[locked.name] = fetch_json(url, ABBREVIATED)
        yield _pin(store, scratch, locked, documents[locked.name])


def locked_packages(lock: Mapping[str, Any]) -> Iterator[Locked]:
    for place, said in lock["packages"].items():
        if not place or said.get("inBundle") or not _is_for_us(said):
            continue
        name = said.get("name") or place.rpartition("node_modules/")[2]
        if "integrity" not in said or "version" not in said:
            raise NetworkFault(
                f"npm: {name} does not come from the registry: {said.get('resolved')}",
                hint="a package index holds what the registry has",
                retry=False,
            )
        yield Locked(name, said["version"], said["integrity"])


def manifest_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a packument's version that is kept."""
    found = {key: said[key] for key in MANIFEST if said.get(key)}
    if any(script in (said.get("scripts") or {}) for script in SCRIPTS):
        found["hasInstallScript"] = True
    return found


def _lock(scratch: Path, packages: Sequence[str]) -> dict[str, Any]:
    folder = scratch / "npm"
    folder.mkdir()
    for name in ("user", "global"):
        (folder / name).touch()
    environment = {k: v for k, v in os.environ.items() if not k.lower().startswith("npm_config_")}
    environment |= {
        "HOME": str(folder),
        "npm_config_userconfig": str(folder / "user"),
        "npm_config_globalconfig": str(folder / "global"),
    }
    options = ["--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"]
    options += ["--no-update-notifier", "--omit-lockfile-registry-resolved=false"]
    options += [f"--registry={ROOTS['npm']}", f"--os={OS}", f"--cpu={CPU}"]
    try:
        done = subprocess.run(
            ["npm", "install", *options, "--", *packages],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=NPM_SECONDS,
        )
    except FileNotFoundError:
        raise NetworkFault(
            "resolving npm's packages asks npm, which is not installed", retry=False
        ) from None
    if done.returncode != 0:
        raise NetworkFault(f"npm cannot resolve the packages: {done.stderr.strip()[-800:]}")
    found: dict[str, Any] = json.loads((folder / "package-lock.json").read_text())
    return found


def _is_for_us(said: Mapping[str, Any]) -> bool:
    mine = (("os", OS), ("cpu", CPU), ("libc", LIBC))
    return not said.get("optional") or all(_allows(said.get(key), own) for key, own in mine)


def _allows(listed: Sequence[str] | None, own: str) -> bool:
    """As in package.json: names, or names with a `!` that are excluded."""
    if not listed:
        return True
    wanted = [name for name in listed if not name.startswith("!")]
    return f"!{own}" not in listed and (not wanted or own in wanted or "any" in wanted)


def _pin(store: Store, scratch: Path, locked: Locked, document: Any) -> NpmPin:
    try:
        said = document["versions"][locked.version]
        dist = said["dist"]
        tags = sorted(t for t, v in document["dist-tags"].items() if v == locked.version)
        told = str(dist["tarball"])
    except (KeyError, TypeError) as e:
        raise NetworkFault(f"npm's registry does not tell of {locked.name}@{locked.version}") from e
    base = f"{locked.name.rpartition('/')[2]}-{locked.version}.tgz"
    usual = f"{ROOTS['npm']}{locked.name}/-/{base}"
    url = told if told.startswith(ROOTS["npm"]) else usual
    fresh = scratch / "tarball"
    sha256 = download(told, fresh)
    _check(fresh, locked)
    path = store.blob(sha256)
    if not path.exists():
        fetch(store, [fresh.as_uri()], sha256=sha256, name=base, fault=NetworkFault)
    data = path.read_bytes()
    return NpmPin(
        name=locked.name,
        version=locked.version,
        filename=url.rpartition("/")[2],
        url=url,
        sha256=sha256,
        size=len(data),
        integrity=_integrity(data),
        shasum=hashlib.sha1(data, usedforsecurity=False).hexdigest(),
        tags=tuple(tags),
        manifest=manifest_of(said),
    )


def _check(file: Path, locked: Locked) -> None:
    """The tarball is what npm's lock says; old packages have a SHA-1 there."""
    data = file.read_bytes()
    sha1 = base64.b64encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()
    if not {_integrity(data), f"sha1-{sha1}"} & set(locked.integrity.split()):
        raise NetworkFault(
            f"refused: {locked.name}@{locked.version} is not what npm's registry says it is",
            retry=False,
        )


def _integrity(data: bytes) -> str:
    return f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"
