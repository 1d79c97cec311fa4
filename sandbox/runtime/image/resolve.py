"""Recipe → lock: ask the archives what is newest, build it, and write down what it is."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from sandbox.errors import ImageFault
from sandbox.formats.digest import digest_of
from sandbox.model.image import DebPin, ImageLock, ImageRecipe, LayerPin, WheelPin
from sandbox.model.task import Digest
from sandbox.runtime.image.apt import open_apt, resolve_debs
from sandbox.runtime.image.build import (
    Progress,
    build,
    build_layer,
    fetch_files,
    keep_file,
)
from sandbox.runtime.image.config import config_bytes, sha256_of
from sandbox.runtime.image.layout import ARCH
from sandbox.runtime.image.pypi import resolve_wheels
from sandbox.runtime.image.stored import hex_of
from sandbox.runtime.spec import PATH
from sandbox.runtime.store import Store

UNKNOWN = Digest("")


def relock(
    store: Store,
    name: str,
    recipe: ImageRecipe,
    base: ImageLock | None,
    progress: Progress,
    home: Path = Path(),
) -> ImageLock:
    """What the recipe means today. `base`: the lock of `recipe.base`, which stays as it is."""
    epoch = base.epoch if base and recipe.epoch is None else recipe.epoch
    if epoch is None:
        raise ImageFault(f"recipe {name} has neither an epoch nor a base", retry=False)
    if base:
        build(store, base, progress, home)
    new, snapshot = _resolve(store, recipe, base)
    fetch_files(store, new, snapshot, progress)
    layers = list(base.layers) if base else []
    for done, pin in enumerate(new):
        progress(f"building {name}", done, len(new))
        layers.append(replace(pin, diff_id=build_layer(store, pin, layers, epoch)))
    if recipe.files:
        diff_id = keep_file(store, home / "repos" / "images" / recipe.files)
        layers.append(LayerPin(kind="files", diff_id=diff_id, file=recipe.files))
    return locked(name, recipe, base, layers, snapshot)


def locked(
    name: str,
    recipe: ImageRecipe,
    base: ImageLock | None,
    layers: Sequence[LayerPin],
    snapshot: str | None,
) -> ImageLock:
    """The lock of a recipe whose layers are known."""
    epoch = base.epoch if base and recipe.epoch is None else recipe.epoch or 0
    env = {"PATH": PATH, "LANG": "C.UTF-8"} | (base.env if base else {}) | (recipe.env or {})
    config = config_bytes(layers, epoch=epoch, arch=ARCH, env=env)
    return ImageLock(
        schema=1,
        name=name,
        epoch=epoch,
        arch=ARCH,
        recipe_sha256=recipe_sha256(recipe, base),
        env=env,
        layers=tuple(layers),
        config_digest=sha256_of(config),
        snapshot=snapshot,
    )


def recipe_sha256(recipe: ImageRecipe, base: ImageLock | None) -> str:
    """Of the recipe and the image it stands on: a lock with another one is stale."""
    said = asdict(recipe)
    if recipe.source is None:
        del said["source"]  # most have none, and had no such key when they were locked
    if recipe.files is None:
        del said["files"]  # as above
    return hex_of(digest_of([said, base.config_digest if base else None]))


def _resolve(
    store: Store, recipe: ImageRecipe, base: ImageLock | None
) -> tuple[list[LayerPin], str | None]:
    below = base.layers if base else ()
    debs: tuple[DebPin, ...] = ()
    wheels: tuple[WheelPin, ...] = ()
    snapshot = base.snapshot if base else None
    with store.scratch() as scratch:
        if recipe.debs:
            apt, snapshot = open_apt(scratch / "apt")
            installed = [p for layer in below for p in layer.debs]
            debs = resolve_debs(apt, recipe.debs, recipe.leave_out, installed)
        if recipe.wheels or recipe.wheels_alone:
            there = [p for layer in below for p in layer.wheels]
            wheels = resolve_wheels(scratch, recipe.wheels, recipe.wheels_alone, there)
    return _layers(recipe, debs, wheels), snapshot


def _layers(
    recipe: ImageRecipe, debs: tuple[DebPin, ...], wheels: tuple[WheelPin, ...]
) -> list[LayerPin]:
    layers = []
    if debs:
        layers.append(LayerPin(kind="debs", diff_id=UNKNOWN, debs=debs))
    if wheels:
        layers.append(LayerPin(kind="wheels", diff_id=UNKNOWN, wheels=wheels))
    if not layers and recipe.files and not recipe.links:
        return []
    if not layers:
        raise ImageFault("the recipe adds nothing", hint="name debs or wheels", retry=False)
    layers[-1] = replace(layers[-1], links=recipe.links)
    return [*layers, LayerPin(kind="pyc", diff_id=UNKNOWN)]
