"""A cassette: answers that were recorded, in a folder that can be committed.

index.jsonl         one line per answer: what was asked for, and the answer but for its body
blobs/<sha256>      bodies, each once; one that is missing is fetched from where it came from
index.lock.jsonl    the frozen package index, if there is one: see index/

One of both indexes may be absent. They name everything by its hash, so their digest pins it all.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sandbox.errors import NetworkFault, SpecError
from sandbox.formats import indexfile, jsonfile
from sandbox.formats.digest import Entry as TreeEntry
from sandbox.formats.digest import tree_digest
from sandbox.formats.jsonfile import decode
from sandbox.formats.shape import Loc, parse
from sandbox.formats.yamlfile import read_text
from sandbox.model.index import LOCK_NAME, IndexLock
from sandbox.model.task import Digest
from sandbox.runtime.fetch import fetch
from sandbox.runtime.image.build import Progress
from sandbox.runtime.network.entry import Entry, index_text, is_header
from sandbox.runtime.network.index.files import ensure_files
from sandbox.runtime.store import Store, check_blob

INDEX, BLOBS = "index.jsonl", "blobs"
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_AGAIN = "record it again: stillroom record TASK"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cassette:
    """What its indexes say, and where each body is. Made by `load`, which has looked at them all."""

    folder: Path
    digest: Digest
    entries: tuple[Entry, ...] = ()
    bodies: Mapping[str, Path] = field(default_factory=dict)
    lock: IndexLock | None = None


def load(folder: Path, store: Store, progress: Progress, *, digest: str | None = None) -> Cassette:
    """Raises SpecError for what is no cassette; NetworkFault for bodies, and for another than pinned."""
    found = cassette_digest(folder)
    if digest is not None and found != digest:
        raise NetworkFault(
            f"refused: the cassette {folder} is {found}, not {digest} as pinned",
            hint="if the change is meant, write the new digest under `network:` in task.yaml",
            retry=False,
        )
    entries = read_index(folder / INDEX) if (folder / INDEX).exists() else ()
    lock = indexfile.load(folder / LOCK_NAME) if (folder / LOCK_NAME).exists() else None
    if lock is not None:
        ensure_files(store, lock, progress)
    bodies = {e.sha256: _body(folder, e, store) for e in _once(entries)}
    return Cassette(folder=folder, digest=found, entries=entries, bodies=bodies, lock=lock)


def cassette_digest(folder: Path) -> Digest:
    """Raises SpecError when there is none."""
    names = [name for name in (INDEX, LOCK_NAME) if (folder / name).exists()]
    if not names:
        raise SpecError("there is no cassette", where=str(folder / INDEX), hint=_AGAIN)
    return tree_digest(TreeEntry(name, "file", (folder / name).read_bytes()) for name in names)


def write(folder: Path, entries: Iterable[Entry], bodies: Iterable[Path]) -> Digest:
    """Replace what it says. `bodies`: folders in which those that it has not are found.

    Bodies first, then the index, then what nobody names any more goes: whoever reads meanwhile finds
    the old one or the new one.
    """
    entries = tuple(entries)
    names = {e.sha256 for e in entries}
    blobs = folder / BLOBS
    blobs.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        found = next((f / name for f in bodies if (f / name).exists()), None)
        if found is not None and not (blobs / name).exists():
            shutil.copyfile(found, blobs / f"{name}.new")
            (blobs / f"{name}.new").replace(blobs / name)
    jsonfile.write(folder / INDEX, index_text(entries))
    for path in blobs.iterdir():
        if path.name not in names:
            path.unlink()
    return cassette_digest(folder)


def read_index(path: Path) -> tuple[Entry, ...]:
    """Raises SpecError, with the line."""
    entries = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        where = f"{path}:{number}"
        entry = parse(decode(line, str(path), line=number), Entry, _at(where))
        for message in _rules(entry):
            raise SpecError(message, where=where, hint=_AGAIN)
        entries.append(entry)
    return tuple(entries)


def _at(where: str) -> Any:
    def at(loc: Loc) -> str:
        del loc
        return where

    return at


def _rules(entry: Entry) -> Iterator[str]:
    for name in ("key", "sha256"):
        if not _HEX.fullmatch(getattr(entry, name)):
            yield f"`{name}` should be 64 hex digits"
    if not _TOKEN.fullmatch(entry.method):
        yield f"`{entry.method}` is not a method"
    if not _is_url(entry.url):
        yield f"`{entry.url}` is not an address"
    if not 200 <= entry.status <= 599:
        yield f"{entry.status} is not a status"
    if entry.size < 0:
        yield "`size` should not be less than 0"
    for name, value in entry.headers:
        if not is_header(name, value):
            yield f"`{name}` is not a header"


def _is_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def _once(entries: Iterable[Entry]) -> Iterable[Entry]:
    return {e.sha256: e for e in entries}.values()


def _body(folder: Path, entry: Entry, store: Store) -> Path:
    path = folder / BLOBS / entry.sha256
    if not path.is_file():
        if entry.method != "GET":
            raise NetworkFault(
                f"the cassette lacks {path}, the answer to {entry.method} {entry.url}",
                hint=_AGAIN,
                retry=False,
            )
        path = fetch(store, [entry.url], sha256=entry.sha256, name=entry.url, fault=NetworkFault)
    check_blob(path, entry.sha256, str(path), NetworkFault)
    return path
