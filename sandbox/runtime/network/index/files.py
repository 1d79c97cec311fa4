"""Every file of a lock in the store, checked."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

from sandbox.errors import NetworkFault
from sandbox.model.index import AptPin, IndexLock, Pin, PypiPin
from sandbox.runtime.fetch import fetch, pypi_url
from sandbox.runtime.image.build import DOWNLOADS_AT_ONCE, SNAPSHOT, Progress
from sandbox.runtime.store import Store


def ensure_files(store: Store, lock: IndexLock, progress: Progress) -> None:
    """Have every pinned file in the store. Refuses, by name, one that is not as pinned."""
    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        waiting = [pool.submit(_ensure, store, pin, lock.head.snapshot) for pin in lock.pins]
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                progress(f"fetching {future.result()}", done, len(waiting))
        finally:
            pool.shutdown(cancel_futures=True)


def _ensure(store: Store, pin: Pin, snapshot: str | None) -> str:
    fetch(store, _urls(pin, snapshot), sha256=pin.sha256, name=pin.filename, fault=NetworkFault)
    return pin.filename


def _urls(pin: Pin, snapshot: str | None) -> Iterator[str]:
    """Lazily: the second is asked for only when the first has it no longer."""
    yield pin.url
    match pin:
        case AptPin() if snapshot:
            yield f"{SNAPSHOT}/{snapshot}/{pin.filename}"
        case PypiPin():
            yield pypi_url(pin.name, pin.filename)
        case _:
            pass
