"""A lock made, or added to, beside a cassette."""

from dataclasses import replace
from pathlib import Path

from sandbox.formats import indexfile
from sandbox.model.index import LOCK_NAME, AptPin, IndexLock
from sandbox.runtime.image.build import Progress
from sandbox.runtime.network.index.resolve import Wanted, resolve
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store


def record_index(
    store: Store,
    folder: Path,
    wanted: Wanted,
    pin: str,
    image: Image | None,
    progress: Progress,
    *,
    fresh: bool = False,
) -> IndexLock:
    """Resolve `wanted`, and write `folder`/index.lock.jsonl. `fresh`: without what was there.

    What was listed stays listed, so that what could be installed still can. Raises what `resolve`
    and reading the lock raise; nothing is written then.
    """
    path = folder / LOCK_NAME
    before = indexfile.load(path) if path.exists() and not fresh else None
    found = resolve(store, wanted, pin, image, progress)
    lock = added(before, found) if before else found
    folder.mkdir(parents=True, exist_ok=True)
    indexfile.write(path, lock)
    return lock


def added(before: IndexLock, found: IndexLock) -> IndexLock:
    """Both; what was found now is believed where they differ."""
    pins = {p.url: p for p in (*before.pins, *found.pins)}
    head = found.head
    if not any(isinstance(p, AptPin) for p in found.pins):
        # Whence its debs came is known of the older one only.
        head = replace(head, snapshot=before.head.snapshot)
    return IndexLock(head=head, pins=indexfile.ordered(pins.values()))
