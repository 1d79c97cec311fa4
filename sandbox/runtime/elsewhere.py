"""Images that come from a container engine: built there from a Dockerfile, or found there."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sandbox.errors import SpecError
from sandbox.formats import jsonfile
from sandbox.formats.dockerfile import Base, canonical, rewritten
from sandbox.formats.home import locate
from sandbox.formats.imagefile import BASES, load_bases
from sandbox.model.image import ImageLock, ImageSource
from sandbox.runtime.docker.address import DEFAULT_HOST
from sandbox.runtime.docker.build import build
from sandbox.runtime.docker.engine import Engine
from sandbox.runtime.docker.images import ensure_tagged, give_tag, inspect, tag_for
from sandbox.runtime.docker.saved import Saved, pull, save
from sandbox.runtime.image.blobs import uncompress
from sandbox.runtime.image.build import Progress
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.image.foreign import BOUNDS, keep_tars
from sandbox.runtime.image.manifest import Config, digest_of, lock_of, read_config, refused
from sandbox.runtime.image.skopeo import UnavailableError
from sandbox.runtime.image.stored import hex_of
from sandbox.runtime.store import Store


def lock_dockerfile(
    store: Store, home: Path, name: str, source: ImageSource, recipe_sha256: str, progress: Progress
) -> ImageLock:
    """Build it; the lock of what came out, whose layers are in the store then.

    Raises SpecError, with the line of the Dockerfile, for a base that is not here; ImageFault when
    the build fails, and RuntimeFault when there is no engine to build with.
    """
    dockerfile = source.dockerfile
    assert dockerfile is not None  # noqa: S101 - for the type checker: the recipe's rules say so
    context = home / dockerfile.folder
    with _engine() as engine, store.scratch() as scratch:
        bases = _Bases(store, home, engine, progress)
        text = rewritten(context / dockerfile.file, dockerfile.args or {}, bases.choose)
        made = build(engine, name, dockerfile, context, text, progress)
        saved = save(engine, made, scratch)
        config = read_config(saved.config, f"what was built of {name}")
        lock = lock_of(name, config, source, recipe_sha256)
        give_tag(engine, made, tag_for(name, lock.config_digest))
        _lay_out(saved, config, scratch)
        keep_tars(store, lock, scratch, "the container engine")
    return lock


def from_engine(lock: ImageLock, folder: Path, progress: Progress) -> None:
    """Layers of the image into the folder, if the engine has it or can pull it by its digest.

    Raises UnavailableError or RuntimeFault, and ImageFault when it pulled something else.
    """
    with _engine() as engine:
        names = [lock.config_digest, tag_for(lock.name, lock.config_digest)]
        found = next((n for n in names if inspect(engine, n)), None)
        if found is None and lock.ref:
            progress(f"the container engine pulls {lock.ref}", 0, 1)
            pull(engine, lock.ref)
            found = lock.ref
        if found is None:
            raise UnavailableError("the container engine does not have it", lasting=True)
        progress(f"reading {lock.name} from the container engine", 0, 1)
        saved = save(engine, found, folder)
    if (digest := digest_of(saved.config)) != lock.config_digest:
        raise refused(
            f"the container engine's {found} is image {digest}, but image {lock.name} is pinned "
            f"as {lock.config_digest}"
        )
    _lay_out(saved, read_config(saved.config, lock.name), folder)


class _Bases:
    """What a Dockerfile starts from: an image of ours by the table, or one the engine has."""

    def __init__(self, store: Store, home: Path, engine: Engine, progress: Progress) -> None:
        self._store, self._home, self._engine, self._progress = store, home, engine, progress
        self._table = load_bases(home).bases
        self._by_name: Mapping[str, str] = {canonical(n): i for n, i in self._table.items()}

    def choose(self, base: Base) -> str:
        """Raises SpecError when there is no such base here."""
        if image := self._by_name.get(canonical(base.name)):
            return self._ours(base, image)
        if inspect(self._engine, base.name):
            return base.name
        raise SpecError(
            f"base `{base.name}` is neither in repos/images/{BASES} nor in the container engine",
            where=base.where,
            hint=f"map it to an image of repos/images in {BASES}, or: docker pull {base.name}",
        )

    def _ours(self, base: Base, image: str) -> str:
        path = locate(self._home, f"repos/images/{image}.lock.json")
        if not path.exists():
            raise SpecError(
                f"base `{base.name}` is image `{image}` by the table, but there is no {path.name}",
                where=str(self._home / "repos" / "images" / BASES),
                hint=f"stillroom lock image {image}",
            )
        lock = jsonfile.load(path, ImageLock)
        made = ensure(self._store, lock, self._progress, home=self._home, engine=from_engine)
        return ensure_tagged(self._engine, self._store, made)


@contextmanager
def _engine() -> Iterator[Engine]:
    engine = Engine(os.environ.get("DOCKER_HOST") or DEFAULT_HOST)
    try:
        yield engine
    finally:
        engine.close()


def _lay_out(saved: Saved, config: Config, folder: Path) -> None:
    """Each layer under the name of its diff_id, to be hashed by whoever keeps it."""
    if len(saved.layers) != len(config.diff_ids):
        raise refused(
            f"the container engine gave {len(saved.layers)} layers, "
            f"its config lists {len(config.diff_ids)}"
        )
    for diff_id, layer in zip(config.diff_ids, saved.layers, strict=True):
        target = folder / f"{hex_of(diff_id)}.tar"
        if not target.exists():
            uncompress(layer, target, BOUNDS.bytes)
            layer.unlink(missing_ok=True)
