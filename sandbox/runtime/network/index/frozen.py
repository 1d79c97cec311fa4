"""All indexes of a lock behind one `answer`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sandbox.formats.indexfile import NAME, load
from sandbox.model.index import AptPin, IndexLock, NpmPin, PypiPin
from sandbox.runtime.network.index import apt, npm, pypi
from sandbox.runtime.network.index.answers import TEXT, refused
from sandbox.runtime.network.message import Answerer, Request, Response
from sandbox.runtime.store import Store


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


def open_index(lock: Path, store: Path, name: str = NAME) -> FrozenIndex:
    """From a lock file, with the files in the store at `store`, where `ensure_files` put them."""
    return frozen_index(load(lock), Store(store).blob, name)
