"""Images that others made: layers by hand, layouts, and what has to be seen of them in a box."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.registries import CONFIG_TYPE, LAYER_TYPE, MANIFEST, Press, descriptor

INDEX = "application/vnd.oci.image.index.v1+json"
TAG = "org.opencontainers.image.ref.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One thing of a layer: a file, unless it is said to be something else."""

    name: str
    content: bytes = b""
    kind: bytes = tarfile.REGTYPE
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    mtime: int = 1_600_000_000
    target: str = ""
    pax: Mapping[str, str] = field(default_factory=dict)


def folder(name: str, mode: int = 0o755, **more: int) -> Member:
    return Member(name=name, kind=tarfile.DIRTYPE, mode=mode, **more)  # type: ignore[arg-type]


def symlink(name: str, target: str) -> Member:
    return Member(name=name, kind=tarfile.SYMTYPE, target=target)


def hard_link(name: str, target: str) -> Member:
    return Member(name=name, kind=tarfile.LNKTYPE, target=target)


def layer(*members: Member) -> bytes:
    """A tar, as the programs that make images write it: names that are not UTF-8 as they are."""
    out = io.BytesIO()
    for member in members:
        info = tarfile.TarInfo(member.name)
        info.type, info.mode, info.mtime = member.kind, member.mode, member.mtime
        info.uid, info.gid, info.linkname = member.uid, member.gid, member.target
        info.size = len(member.content)
        info.pax_headers = dict(member.pax)
        if member.pax:
            out.write(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        else:
            out.write(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"))
        out.write(member.content + bytes(-len(member.content) % tarfile.BLOCKSIZE))
    return out.getvalue() + bytes(2 * tarfile.BLOCKSIZE)


def digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A layout and what is in it."""

    layout: Path
    manifest: str
    config: str
    diff_ids: tuple[str, ...]

    def blob(self, digest: str) -> Path:
        return self.layout / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def layers(self) -> list[str]:
        found = json.loads(self.blob(self.manifest).read_bytes())
        return [str(each["digest"]) for each in found["layers"]]


def write_layout(
    place: Path,
    layers: Sequence[bytes],
    *,
    press: Press = gzip.compress,
    media_type: str = LAYER_TYPE + "+gzip",
    arch: str = "amd64",
    env: Iterable[str] = ("FOREIGN=yes",),
    tag: str = "1",
    user: str = "1000:1000",
    claimed: Sequence[str] = (),
) -> Made:
    """A layout of one image. `claimed`: diff_ids, where they are not those of the layers."""
    diff_ids = tuple(claimed) or tuple(digest(each) for each in layers)
    config = {
        "architecture": arch,
        "os": "linux",
        "created": "2024-01-02T03:04:05.678901234Z",
        "author": "somebody else",
        "config": {
            "Env": list(env),
            "WorkingDir": "/world",
            "User": user,
            "Entrypoint": ["/no/such/program"],
            "Cmd": ["--flag"],
        },
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    }
    # With spaces, as no program of ours would write it: it has to be kept as it is.
    text = json.dumps(config, indent=3).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(place, text, CONFIG_TYPE),
        "layers": [descriptor(place, press(each), media_type) for each in layers],
    }
    found = descriptor(place, json.dumps(manifest).encode(), MANIFEST)
    found |= {"platform": {"os": "linux", "architecture": arch}, "annotations": {TAG: tag}}
    _add_to_index(place, found)
    return Made(layout=place, manifest=str(found["digest"]), config=digest(text), diff_ids=diff_ids)


def nest(place: Path, tag: str = "1") -> str:
    """Put what the index lists into an index of its own, as images of several platforms have it."""
    inner = json.loads((place / "index.json").read_bytes())
    for each in inner["manifests"]:
        del each["annotations"]
    content = json.dumps({"schemaVersion": 2, "mediaType": INDEX, **inner}).encode()
    found = descriptor(place, content, INDEX) | {"annotations": {TAG: tag}}
    (place / "index.json").unlink()
    _add_to_index(place, found)
    return str(found["digest"])


def _add_to_index(place: Path, found: Mapping[str, object]) -> None:
    path = place / "index.json"
    there = json.loads(path.read_bytes())["manifests"] if path.exists() else []
    (place / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    path.write_text(json.dumps({"schemaVersion": 2, "manifests": [*there, found]}))
