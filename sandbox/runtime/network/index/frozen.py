"""All indexes of a lock behind one `answer`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sandbox.formats.indexfile import NAME
from sandbox.model.index import AptPin, IndexLock, NpmPin, PypiPin
from sandbox.runtime.network.index import apt, npm, pypi
from sandbox.runtime.network.index.answers import TEXT, answered
from sandbox.runtime.network.message import Answerer, Request, Response


@dataclass(frozen=True, slots=True)
class FrozenIndex:
    """Answers from a lock and stored files, the same today and next year. Reads, never writes.

    None for other hosts, and for indexes of which the lock holds nothing; a host that is its own
    gets 404 for what is not listed, so whoever may know more has to be asked before.
    """

    hosts: Mapping[str, Answerer]

    def answer(self, request: Request) -> Response | None:
        host = (urlsplit(request.url).hostname or "").rstrip(".")
        index = self.hosts.get(host)
        if index is None:
            return None
        if request.method not in ("GET", "HEAD"):
            text = f"{request.method} is not for a frozen package index\n"
            return answered(text.encode(), TEXT, status=405)
        return index.answer(request)


def frozen_index(lock: IndexLock, blob: Callable[[str], Path], name: str = NAME) -> FrozenIndex:
    """`blob`: the stored file with this hash. `name`: of the lock, for who asks for something else."""
    head, hosts = lock.head, dict[str, Answerer]()
    if wheels := [p for p in lock.pins if isinstance(p, PypiPin)]:
        hosts |= dict.fromkeys(pypi.HOSTS, pypi.pypi(wheels, blob, name))
    if tarballs := [p for p in lock.pins if isinstance(p, NpmPin)]:
        hosts |= dict.fromkeys(npm.HOSTS, npm.npm(tarballs, head.pin, blob, name))
    if debs := [p for p in lock.pins if isinstance(p, AptPin)]:
        hosts |= dict.fromkeys(apt.HOSTS, apt.apt(debs, head.arch, head.pin, blob, name))
    return FrozenIndex(hosts)
