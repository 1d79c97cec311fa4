"""An OCI layout, a folder or a tar of one: which image it holds, and its blobs."""

import json
import re
import tarfile
from pathlib import Path
from typing import Any

from sandbox.errors import ImageFault
from sandbox.model.task import Digest
from sandbox.runtime.image.layout import ARCH
from sandbox.runtime.image.manifest import (
    CONFIG_BYTES,
    INDEXES,
    MANIFESTS,
    digest_of,
    read_descriptor,
    refused,
)
from sandbox.runtime.image.skopeo import UnavailableError

MEMBER = re.compile(r"(?:\./)?(index\.json|oci-layout|blobs/sha256/[0-9a-f]{64})", re.ASCII)
TAG = "org.opencontainers.image.ref.name"
MOST_INDEXES = 4
"""One within another."""
BLOCK = 1 << 20


def opened(place: Path, scratch: Path, limit: int) -> Path:
    """The layout as a folder: itself, or what is needed of the tar. Raises UnavailableError."""
    if place.is_dir():
        return place
    if not place.is_file():
        raise UnavailableError(f"there is no {place}", lasting=True)
    folder = scratch / "layout"
    (folder / "blobs" / "sha256").mkdir(parents=True)
    try:
        with tarfile.open(place, "r:*") as archive:
            for member in archive:
                name = MEMBER.fullmatch(member.name)
                if name and member.isreg() and (source := archive.extractfile(member)):
                    with (folder / name[1]).open("wb") as target:
                        while block := source.read(BLOCK):
                            limit -= len(block)
                            if limit < 0:
                                raise UnavailableError(f"{place} is too large", lasting=True)
                            target.write(block)
    except (tarfile.TarError, OSError, EOFError) as e:
        raise refused(f"{place} is no tar of an OCI layout: {e}") from None
    return folder


def find_manifest(layout: Path, tag: str | None, name: str) -> bytes:
    """The one manifest for this platform. Raises ImageFault when there is none, or a choice."""
    try:
        index = json.loads((layout / "index.json").read_bytes())
        found = [d for d in index["manifests"] if tag is None or _tag(d) == tag]
        chosen = _chosen(layout, found, 0)
    except FileNotFoundError:
        raise refused(f"{name} is no OCI layout: it lacks index.json, or a manifest") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise refused(f"{name} has an index.json that cannot be read") from None
    if len(chosen) != 1:
        tags = ", ".join(sorted(str(_tag(d)) for d in index["manifests"] if _tag(d)))
        raise ImageFault(
            f"{name} has {len(chosen) or 'no'} images for linux/{ARCH}"
            + (f" of the tag `{tag}`" if tag else ""),
            hint=f"choose with `tag`: {tags}" if tags else "",
            retry=False,
        )
    return blob_bytes(layout, chosen[0], name)


def blob_path(layout: Path, digest: Digest) -> Path:
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")


def blob_bytes(layout: Path, digest: Digest, name: str) -> bytes:
    """A small blob, checked. Raises ImageFault."""
    try:
        with blob_path(layout, digest).open("rb") as f:
            raw = f.read(CONFIG_BYTES + 1)
    except OSError:
        raise refused(f"{name} lacks {digest}") from None
    if (found := digest_of(raw)) != digest:
        raise refused(f"{name} has something else under {digest}: {found}")
    return raw


def _chosen(layout: Path, descriptors: list[Any], depth: int) -> list[Digest]:
    found: list[Digest] = []
    for each in descriptors:
        descriptor, platform = read_descriptor(each), each.get("platform")
        if platform and (platform["os"], platform["architecture"]) != ("linux", ARCH):
            continue
        if descriptor.media_type in MANIFESTS:
            found.append(descriptor.digest)
        elif descriptor.media_type in INDEXES and depth < MOST_INDEXES:
            index = json.loads(blob_bytes(layout, descriptor.digest, str(layout)))
            found += _chosen(layout, index["manifests"], depth + 1)
    return list(dict.fromkeys(found))


def _tag(descriptor: Any) -> str | None:
    value = (descriptor.get("annotations") or {}).get(TAG)
    return value if isinstance(value, str) else None
