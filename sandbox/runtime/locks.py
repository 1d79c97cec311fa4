"""Making pins: lock an image again, find a repository's commit and tree."""

from pathlib import Path

from sandbox.errors import SpecError
from sandbox.formats import jsonfile, yamlfile
from sandbox.formats.repofile import load_repo_lock
from sandbox.model.image import ImageLock, ImageRecipe
from sandbox.model.task import RepoPin
from sandbox.runtime.image.build import Progress
from sandbox.runtime.image.resolve import relock
from sandbox.runtime.repo.pins import Repos
from sandbox.runtime.store import Store


def image_lock_path(home: Path, name: str) -> Path:
    return home / "repos" / "images" / f"{name}.lock.json"


def lock_image(store: Store, home: Path, name: str, progress: Progress) -> ImageLock:
    """Lock the recipe to what the archives have today; writes <name>.lock.json."""
    recipe = yamlfile.load(home / "repos" / "images" / f"{name}.yaml", ImageRecipe)
    base = None
    if recipe.base:
        base = jsonfile.load(image_lock_path(home, recipe.base), ImageLock)
    lock = relock(store, name, recipe, base, progress)
    jsonfile.write(image_lock_path(home, name), jsonfile.dumps(lock))
    return lock


def repin(home: Path, old: str, new: str) -> list[Path]:
    """Replace an image digest in every task of `home`; returns the files that changed."""
    changed = []
    for path in sorted((home / "task_specs").glob("*/task.yaml")):
        text = yamlfile.read_text(path)
        if old != new and old in text:
            jsonfile.write(path, text.replace(old, new))
            changed.append(path)
    return changed


def pin_repo(store: Store, home: Path, name: str) -> RepoPin:
    """What repos/lock.yaml should say of this source, whatever it says now."""
    lock = load_repo_lock(home)
    if name not in lock.repos:
        raise SpecError(
            f"there is no `{name}`",
            where=str(home / "repos" / "lock.yaml"),
            hint="known: " + ", ".join(sorted(lock.repos)),
        )
    return Repos(store, home / "repos", dict(lock.repos)).pin_of(name)
