"""Images: from the store into the engine, by content."""

import contextlib
import fcntl
import hashlib
import json
import mmap
import os
import posixpath
import re
import tarfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker.errors

from sandbox.errors import ImageFault, RuntimeFault
from sandbox.model.task import Digest
from sandbox.runtime.changeset import WHITEOUT
from sandbox.runtime.docker.engine import Engine, faults, late
from sandbox.runtime.docker.tarstream import BLOCK, END, file_entry, padding
from sandbox.runtime.spec import BoxSpec, Image, ImageLayer, Seed
from sandbox.runtime.store import Store, sha256_file

SEEDED = "stillroom.seeded"
"""A label: the store whose seeds are in the image."""
CONTAINERD_STORE = "io.containerd.snapshotter.v1"


class Loaded:
    """The images that the engine has, with the seeds of a spec as their topmost layers.

    So a repository goes into the engine once, not into every box, and a box's changes are told
    from it by the engine's own storage. Such an image is removed by the last run that used it.
    """

    def __init__(self, engine: Engine, store: Store, store_id: Callable[[], str]) -> None:
        self._engine = engine
        self._store = store
        self._store_id = store_id
        self._known: dict[tuple[str, ...], str] = {}
        self._uses = Uses(store.root / "docker" / "images")

    def ready(self, spec: BoxSpec) -> str:
        """What the engine calls it, loaded if need be."""
        key = _key(spec)
        if key not in self._known:
            image = spec.image
            if spec.seeds:
                ensure_loaded(self._engine, self._store, image)
                there = len(image.layers)
                image = with_seeds(self._store, image, spec.seeds, self._store_id())
                self._uses.begin(tag_of(image))
                self._load_quickly(image, there)
            self._known[key] = ensure_loaded(self._engine, self._store, image)
        return self._known[key]

    def forget(self, spec: BoxSpec) -> None:
        self._known.pop(_key(spec), None)

    def close(self) -> list[str]:
        """Remove the seeded ones that were used here and are used nowhere else.

        Returns those that the engine did not remove in time: the next reap will.
        """
        self._known.clear()
        return self._remove(self._uses.end())[1]

    def reap(self) -> tuple[list[str], list[str]]:
        """Remove those of this store that no living run uses; returns their names.

        Then those that the engine did not remove in time.
        """
        with faults("list images"):
            mine = {"label": f"{SEEDED}={self._store_id()}"}
            found = self._engine.brief.images(filters=mine)
        names = [str(name) for image in found for name in image.get("RepoTags") or ()]
        return self._remove(names)

    def _remove(self, tags: Sequence[str]) -> tuple[list[str], list[str]]:
        """Those that are removed; and, after one that was not in time, all the others."""
        gone = []
        for at, tag in enumerate(tags):
            try:
                if self._removed(tag):
                    gone.append(tag)
            except RuntimeFault as e:
                if not late(e):
                    raise
                return gone, list(tags[at:])
        return gone, []

    def _load_quickly(self, image: Image, there: int) -> None:
        """Send the engine no layer that it has, of which it does not look at the content.

        One that wants them all the same refuses; then the whole image is loaded as any other.
        """
        if self._engine.is_podman:
            return
        with self._store.lock(f"docker-image-{_hex(image.digest)}"):
            if _find(self._engine, image) is None:
                with contextlib.suppress(RuntimeFault):
                    _load(self._engine, image, there)

    def _removed(self, tag: str) -> bool:
        """False when it is in use, or gone."""
        with self._uses.nowhere(tag) as unused:
            if not unused:
                return False
            try:
                with faults(f"remove image {tag}"):
                    self._engine.brief.remove_image(tag)
            except RuntimeFault as e:
                if isinstance(e.__cause__, docker.errors.APIError):
                    return False
                raise
            return True


class Uses:
    """Which run uses which image: each holds a shared lock on a file, which ends when it dies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}

    def begin(self, tag: str) -> None:
        """Before it is looked for: whoever is about to remove it is waited for."""
        with self._lock:
            if tag not in self._held:
                fd = self._open(tag)
                fcntl.flock(fd, fcntl.LOCK_SH)
                self._held[tag] = fd

    def end(self) -> list[str]:
        """All that were begun here."""
        with self._lock:
            held, self._held = self._held, {}
        for fd in held.values():
            os.close(fd)
        return list(held)

    @contextlib.contextmanager
    def nowhere(self, tag: str) -> Iterator[bool]:
        """Is it used by no run? Then nobody begins to, meanwhile."""
        fd = self._open(tag)
        try:
            unused = True
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                unused = False
            yield unused
        finally:
            os.close(fd)

    def _open(self, tag: str) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{tag.rpartition(':')[2]}.used"
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def with_seeds(store: Store, image: Image, seeds: Sequence[Seed], store_id: str) -> Image:
    """The image with a layer more for each seed, labelled; its config is kept in the store."""
    layers = [*image.layers, *(_layer(seed) for seed in seeds)]
    config = json.loads(image.config.read_bytes())
    config["rootfs"]["diff_ids"] = [layer.diff_id for layer in layers]
    if "history" in config:
        config["history"] += [{"created_by": "stillroom: seed"} for _ in seeds]
    settings = config["config"] = config.get("config") or {}
    settings["Labels"] = {**(settings.get("Labels") or {}), SEEDED: store_id}
    content = json.dumps(config, sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()
    path = store.root / "docker" / "images" / f"{digest}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with store.scratch() as folder:
            (folder / "config").write_bytes(content)
            (folder / "config").replace(path)
    return replace(
        image,
        name=f"{image.name}-seeded",
        digest=Digest(f"sha256:{digest}"),
        config=path,
        layers=tuple(layers),
    )


def _layer(seed: Seed) -> ImageLayer:
    _check_names(seed.tar)
    diff_id = Digest(f"sha256:{sha256_file(seed.tar)}")
    return ImageLayer(diff_id=diff_id, tar=seed.tar, folder=seed.folder)


def _check_names(path: Path) -> None:
    """Raises RuntimeFault for a file that is called like a whiteout: in a layer it would be one."""
    with path.open("rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find(WHITEOUT.encode()) < 0:  # so nearly always; names take far longer to read
            return
    with tarfile.open(path, "r:", encoding="utf-8", errors="surrogateescape") as tar:
        for info in tar:
            if posixpath.basename(info.name).startswith(WHITEOUT):
                raise RuntimeFault(
                    f"the repository has a file called {info.name!r}: an engine would take it for "
                    "a mark that a file was removed",
                    hint="run it with `--runtime embedded`",
                    retry=False,
                )


def _key(spec: BoxSpec) -> tuple[str, ...]:
    return (spec.image.digest, *(str(seed.tar) for seed in spec.seeds))


def ensure_loaded(engine: Engine, store: Store, image: Image) -> str:
    """The engine's id of the image, loaded from the store if need be. Raises ImageFault."""
    if found := _find(engine, image):
        return found
    with store.lock(f"docker-image-{_hex(image.digest)}"):
        if found := _find(engine, image):
            return found
        said = _load(engine, image)
        if found := _find(engine, image):
            return found
    raise ImageFault(
        f"the container engine does not have {image.name} as {image.digest} after loading it"
        + (f": {said}" if said else ""),
        hint="the stored layers may have been changed; remove them from the store and run again",
        retry=False,
    )


def docker_archive(image: Image, tag: str, there: int = 0) -> Iterator[bytes]:
    """What `docker load` reads, streamed from the store, without the first layers: `there`."""
    config = image.config.read_bytes()
    config_name = f"{_hex(image.digest)}.json"
    layers = [f"{_hex(layer.diff_id)}/layer.tar" for layer in image.layers]
    manifest = json.dumps([{"Config": config_name, "RepoTags": [tag], "Layers": layers}]).encode()
    for name, content in (("manifest.json", manifest), (config_name, config)):
        yield file_entry(name, len(content)) + content + padding(len(content))
    # A layer that comes twice, as empty ones do, is sent once.
    known = set(layers[:there])
    for name, layer in dict(zip(layers, image.layers, strict=True)).items():
        if name in known:
            continue
        size = layer.tar.stat().st_size
        yield file_entry(name, size)
        with layer.tar.open("rb") as f:
            while block := f.read(BLOCK):
                yield block
        yield padding(size)
    yield END


def tag_of(image: Image) -> str:
    """For people who list images; it also keeps `docker image prune` from taking it."""
    return tag_for(image.name, image.digest)


def tag_for(name: str, digest: str) -> str:
    """The tag of an image of this name and digest, whether or not it is there."""
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "image"
    return f"stillroom/{name}:{_hex(digest)[:16]}"


def ensure_tagged(engine: Engine, store: Store, image: Image) -> str:
    """A name for a Dockerfile to start from. It means this image and no other."""
    found, tag = ensure_loaded(engine, store, image), tag_of(image)
    give_tag(engine, found, tag)
    return tag


def give_tag(engine: Engine, image: str, tag: str) -> None:
    repository, _, name = tag.partition(":")
    with faults(f"name {image} in the container engine"):
        engine.api.tag(image, repository, name)


def inspect(engine: Engine, name: str) -> dict[str, Any] | None:
    """What the engine says of an image; None when it has none of this name or id."""
    try:
        with faults("look for the image"):
            return dict(engine.api.inspect_image(name))  # type: ignore[no-untyped-call]
    except RuntimeFault as e:
        if isinstance(e.__cause__, docker.errors.NotFound):
            return None
        raise


def _find(engine: Engine, image: Image) -> str | None:
    found = inspect(engine, image.digest)
    if found is None:
        return _find_by_layers(engine, image)
    return image.digest if found["Id"] == image.digest else None


def _find_by_layers(engine: Engine, image: Image) -> str | None:
    """Engines with containerd's image store call an image by its manifest, not its config.

    There the layers decide; the rest of the config we set ourselves when a box is made.
    """
    status = dict(engine.about.get("DriverStatus") or [])
    if status.get("driver-type") != CONTAINERD_STORE:
        return None
    found = inspect(engine, tag_of(image))
    if found is None:
        return None
    same = found["RootFS"].get("Layers") == [layer.diff_id for layer in image.layers]
    return str(found["Id"]) if same else None


def _load(engine: Engine, image: Image, there: int = 0) -> str:
    """Load it; returns the engine's complaints."""
    with faults(f"load {image.name} into the container engine"):
        archive = docker_archive(image, tag_of(image), there)
        answer = list(engine.api.load_image(archive))  # type: ignore[no-untyped-call]
    return "; ".join(str(line["error"]) for line in answer if "error" in line)


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")
