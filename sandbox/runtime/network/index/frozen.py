"""All indexes of a lock behind one `answer`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sandbox.model.index import LOCK_NAME, AptPin, IndexHead, IndexLock, NpmPin, Pin, PypiPin
from sandbox.runtime.network.index import apt, npm, pypi
from sandbox.runtime.network.index.answers import TEXT, refused
from sandbox.runtime.network.message import Answerer, Request, Response

_KINDS: Mapping[str, Callable[..., Pin]] = {"pypi": PypiPin, "npm": NpmPin, "apt": AptPin}


@dataclass(frozen=True, slots=True)
class FrozenIndex:
    """Answers from a lock and stored files, the same today and next year. Reads, never writes.

    None for other hosts, and for indexes of which the lock holds nothing. For the rest it has the
    last word: what is not listed is 404, and nobody else has to be asked.
    """

    hosts: Mapping[str, Answerer]

    def answer(self, request: Request) -> Response | None:
        host = (urlsplit(request.url).hostname or "").rstrip(".")
        index = self.hosts.get(host)
        if index is None:
            return None
        if request.method not in ("GET", "HEAD"):
            text = f"{request.method} is not for a frozen package index\n"
            return refused(text.encode(), TEXT, status=405)
        return index.answer(request)


def frozen_index(
    lock: IndexLock, blob: Callable[[str], Path], name: str = LOCK_NAME
) -> FrozenIndex:
    """`blob`: the stored file with this hash. `name`: of the lock, for who asks for something else."""
    head, hosts = lock.head, dict[str, Answerer]()
    if wheels := [p for p in lock.pins if isinstance(p, PypiPin)]:
        hosts |= dict.fromkeys(pypi.HOSTS, pypi.pypi(wheels, blob, name))
    if tarballs := [p for p in lock.pins if isinstance(p, NpmPin)]:
        hosts |= dict.fromkeys(npm.HOSTS, npm.npm(tarballs, head.pin, blob, name))
    if debs := [p for p in lock.pins if isinstance(p, AptPin)]:
        hosts |= dict.fromkeys(apt.HOSTS, apt.apt(debs, head.arch, head.pin, blob, name))
    return FrozenIndex(hosts)


def open_index(lock: Path, blobs: Path, name: str = LOCK_NAME) -> FrozenIndex:
    """From a lock that was looked at by those who fetched its files into the folder `blobs`."""
    head, *pins = map(json.loads, lock.read_text(encoding="utf-8").splitlines())
    read = IndexLock(head=IndexHead(**head), pins=tuple(map(_pin, pins)))
    return frozen_index(read, lambda sha256: blobs / sha256, name)


def _pin(data: dict[str, Any]) -> Pin:
    if "tags" in data:
        data["tags"] = tuple(data["tags"])
    return _KINDS[data["kind"]](**data)
