"""Lock → layers in the store. What comes out is what was pinned, or it is refused."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from sandbox.errors import ImageFault
from sandbox.formats.home import locate
from sandbox.model.image import DebPin, ImageLock, LayerPin, WheelPin
from sandbox.model.task import Digest
from sandbox.runtime.fetch import fetch, pypi_url
from sandbox.runtime.image.config import config_of, sha256_of
from sandbox.runtime.image.debs import debs_entries
from sandbox.runtime.image.entry import Entry, symlink, with_parents
from sandbox.runtime.image.layer import write_layer
from sandbox.runtime.image.layout import DPKG_STATUS, INTERPRETER, inside
from sandbox.runtime.image.pyc import pyc_entries
from sandbox.runtime.image.stored import hex_of, keep_layer, layer_tar, unpacked
from sandbox.runtime.image.wheels import wheels_entries
from sandbox.runtime.store import Store, sha256_file

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and of how much."""
DEBIAN = "http://deb.debian.org/debian"
SNAPSHOT = "https://snapshot.debian.org/archive/debian"
DOWNLOADS_AT_ONCE = 8
LAYERS_AT_ONCE = 2


def build(store: Store, lock: ImageLock, progress: Progress, home: Path = Path()) -> None:
    """Make the layers that the store lacks. Raises ImageFault when one is not as pinned.

    home: the folder that holds repos/, for layers that are files there.
    """
    check_config(lock)
    missing = [n for n, p in enumerate(lock.layers) if not layer_tar(store, p.diff_id).exists()]
    if not missing:
        return
    missing = [n for n in missing if not _found(store, lock.layers[n], home, lock.name)]
    fetch_files(store, [lock.layers[n] for n in missing], lock.snapshot, progress)

    def make(n: int) -> None:
        pin = lock.layers[n]
        with store.lock(f"build-{hex_of(pin.diff_id)}"):
            if not layer_tar(store, pin.diff_id).exists():
                build_layer(store, pin, lock.layers[:n], lock.epoch, expected_by=lock.name)

    alone = [n for n in missing if _stands_alone(lock.layers, n)]
    done = 0
    progress(f"building {lock.name}", done, len(missing))
    with ThreadPoolExecutor(LAYERS_AT_ONCE) as pool:
        for _ in pool.map(make, alone):
            progress(f"building {lock.name}", done := done + 1, len(missing))
    for n in (n for n in missing if n not in alone):
        make(n)
        progress(f"building {lock.name}", done := done + 1, len(missing))


def keep_file(store: Store, tar: Path) -> Digest:
    """A layer that is a file: into the store."""
    found = Digest(f"sha256:{sha256_file(tar)}")
    with store.scratch() as scratch:
        shutil.copyfile(tar, scratch / "layer.tar")
        keep_layer(store, scratch / "layer.tar", found)
    return found


def _found(store: Store, pin: LayerPin, home: Path, name: str) -> bool:
    """Is it a file, and in the store now? Raises ImageFault for another than the pinned one."""
    if pin.file is None:
        return False
    tar = locate(home, f"repos/images/{pin.file}")
    if not tar.is_file() or f"sha256:{sha256_file(tar)}" != pin.diff_id:
        raise ImageFault(
            f"refused: {tar} is not the layer that image {name} pins as {pin.diff_id}",
            hint=_relock(name),
            retry=False,
        )
    keep_file(store, tar)
    return True


def check_config(lock: ImageLock) -> None:
    """Raises ImageFault when the lock's digest is not that of what it lists."""
    if (found := sha256_of(config_of(lock))) != lock.config_digest:
        raise ImageFault(
            f"refused: image {lock.name} is pinned as {lock.config_digest}, "
            f"but what its lock lists makes {found}",
            hint=_relock(lock.name),
            retry=False,
        )


def build_layer(
    store: Store, pin: LayerPin, below: Sequence[LayerPin], epoch: int, *, expected_by: str = ""
) -> Digest:
    """Make one layer from stored files and keep it. `expected_by`: the image that pins its hash."""
    with store.scratch() as scratch:
        entries = with_parents([*_entries(store, pin, below, scratch), *_links(pin)])
        tar = scratch / "layer.tar"
        found = write_layer(entries.values(), tar, epoch)
        if expected_by and found != pin.diff_id:
            raise ImageFault(
                f"refused: layer {pin.kind} of image {expected_by} came out as {found}, "
                f"pinned is {pin.diff_id}",
                hint=_relock(expected_by),
                retry=False,
            )
        keep_layer(store, tar, found)
    return found


def fetch_files(
    store: Store, pins: Sequence[LayerPin], snapshot: str | None, progress: Progress
) -> None:
    """Have every pinned file in the store, checked. Refuses, by name, one that differs."""
    debs = [p for pin in pins for p in pin.debs]
    wheels = [p for pin in pins for p in pin.wheels]
    total = len(debs) + len(wheels)
    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        waiting = [pool.submit(_fetch_deb, store, pin, snapshot) for pin in debs]
        waiting += [pool.submit(_fetch_wheel, store, pin) for pin in wheels]
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                progress(f"fetching {future.result()}", done, total)
        finally:
            pool.shutdown(cancel_futures=True)


def _fetch_deb(store: Store, pin: DebPin, snapshot: str | None) -> str:
    urls = [f"{DEBIAN}/{pin.path}"]
    if snapshot:  # the archive itself keeps only what is current
        urls.append(f"{SNAPSHOT}/{snapshot}/{pin.path}")
    fetch(store, urls, sha256=pin.sha256, name=_deb_name(pin), fault=ImageFault)
    return _deb_name(pin)


def _fetch_wheel(store: Store, pin: WheelPin) -> str:
    # Lazily: the index is asked only when the store lacks the file.
    urls = (pypi_url(name, pin.file) for name in [pin.name])
    fetch(store, urls, sha256=pin.sha256, name=pin.file, fault=ImageFault)
    return pin.file


def _entries(
    store: Store, pin: LayerPin, below: Sequence[LayerPin], scratch: Path
) -> Iterable[Entry]:
    match pin.kind:
        case "debs":
            debs = [(_deb_name(p), store.blob(p.sha256)) for p in pin.debs]
            return debs_entries(debs, _status_below(store, below))
        case "wheels":
            return wheels_entries((p.file, store.blob(p.sha256)) for p in pin.wheels)
        case "pyc":
            folders = [unpacked(store, p.diff_id) for p in _uncompiled(below)]
            return pyc_entries(_system(store, below), folders, scratch)
        case "oci" | "files":
            raise ImageFault(
                f"layer {pin.diff_id} was made elsewhere, yet its lock does not say where",
                hint="lock the image again: stillroom lock image NAME",
                retry=False,
            )


def _uncompiled(below: Sequence[LayerPin]) -> Sequence[LayerPin]:
    """The layers since the last bytecode layer: an image compiles its own, its base did its."""
    last = max((n for n, p in enumerate(below) if p.kind == "pyc"), default=-1)
    return below[last + 1 :]


def _system(store: Store, below: Sequence[LayerPin]) -> Path:
    for pin in below:
        if pin.kind == "debs":
            folder = unpacked(store, pin.diff_id)
            if (folder / INTERPRETER).exists():
                return folder
    raise ImageFault(f"no layer has {INTERPRETER}", hint="add python3 to its debs", retry=False)


def _status_below(store: Store, below: Sequence[LayerPin]) -> str:
    lists = [unpacked(store, p.diff_id) / DPKG_STATUS for p in below if p.kind == "debs"]
    return lists[-1].read_text() if lists else ""


def _stands_alone(layers: Sequence[LayerPin], n: int) -> bool:
    """Can it be made without the layers below it?"""
    first = not any(p.kind == "debs" for p in layers[:n])
    return layers[n].kind == "wheels" or (layers[n].kind == "debs" and first)


def _links(pin: LayerPin) -> Iterator[Entry]:
    for path, target in (pin.links or {}).items():
        yield symlink(inside(path), target)


def _deb_name(pin: DebPin) -> str:
    return f"{pin.name}_{pin.version}_{pin.arch}.deb"


def _relock(name: str) -> str:
    return f"if that is intended: stillroom lock image {name}"
