"""Images: from the store into the engine, by content."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import docker.errors

from sandbox.errors import ImageFault, RuntimeFault
from sandbox.model.task import Digest
from sandbox.runtime.base import BoxSpec, Image, ImageLayer, Seed
from sandbox.runtime.docker.engine import Engine, faults
from sandbox.runtime.docker.tarstream import BLOCK, END, file_entry, padding
from sandbox.runtime.store import Store, sha256_file

CONTAINERD_STORE = "io.containerd.snapshotter.v1"


class Loaded:
    """The images that the engine has, with the seeds of a spec as their topmost layers.

    So a repository goes into the engine once, not into every box, and a box's changes are told
    from it by the engine's own storage.
    """

    def __init__(self, engine: Engine, store: Store) -> None:
        self._engine = engine
        self._store = store
        self._known: dict[tuple[str, ...], str] = {}

    def ready(self, spec: BoxSpec) -> str:
        """What the engine calls it, loaded if need be."""
        key = _key(spec)
        if key not in self._known:
            image = spec.image
            if spec.seeds:
                ensure_loaded(self._engine, self._store, image)
                image = with_seeds(self._store, image, spec.seeds)
            self._known[key] = ensure_loaded(self._engine, self._store, image)
        return self._known[key]

    def forget(self, spec: BoxSpec) -> None:
        self._known.pop(_key(spec), None)


def with_seeds(store: Store, image: Image, seeds: Sequence[Seed]) -> Image:
    """The image with a layer more for each seed; its config is kept in the store."""
    layers = [*image.layers, *(_layer(seed) for seed in seeds)]
    config = json.loads(image.config.read_bytes())
    config["rootfs"]["diff_ids"] = [layer.diff_id for layer in layers]
    if "history" in config:
        config["history"] += [{"created_by": "stillroom: seed"} for _ in seeds]
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
    diff_id = Digest(f"sha256:{sha256_file(seed.tar)}")
    return ImageLayer(diff_id=diff_id, tar=seed.tar, folder=seed.folder)


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


def docker_archive(image: Image, tag: str) -> Iterator[bytes]:
    """What `docker load` reads, streamed from the store."""
    config = image.config.read_bytes()
    config_name = f"{_hex(image.digest)}.json"
    layers = [f"{_hex(layer.diff_id)}/layer.tar" for layer in image.layers]
    manifest = json.dumps([{"Config": config_name, "RepoTags": [tag], "Layers": layers}]).encode()
    for name, content in (("manifest.json", manifest), (config_name, config)):
        yield file_entry(name, len(content)) + content + padding(len(content))
    # A layer that comes twice, as empty ones do, is sent once.
    for name, layer in dict(zip(layers, image.layers, strict=True)).items():
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
    with faults("ask the engine how it stores images"):
        status = dict(engine.api.info().get("DriverStatus") or [])
    if status.get("driver-type") != CONTAINERD_STORE:
        return None
    found = inspect(engine, tag_of(image))
    if found is None:
        return None
    same = found["RootFS"].get("Layers") == [layer.diff_id for layer in image.layers]
    return str(found["Id"]) if same else None


def _load(engine: Engine, image: Image) -> str:
    """Load it; returns the engine's complaints."""
    with faults(f"load {image.name} into the container engine"):
        archive = docker_archive(image, tag_of(image))
        answer = list(engine.api.load_image(archive))  # type: ignore[no-untyped-call]
    return "; ".join(str(line["error"]) for line in answer if "error" in line)


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")
