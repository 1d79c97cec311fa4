"""Making pins: lock an image again, find a repository's commit and tree."""

from pathlib import Path

from sandbox.errors import SpecError, UserError
from sandbox.formats import jsonfile, yamlfile
from sandbox.formats.digest import folder_entries, tree_digest
from sandbox.formats.home import locate
from sandbox.formats.repofile import FolderSource, RepoSource, load_repo_lock
from sandbox.formats.skeleton import repo_entry, task_files, task_yaml
from sandbox.model.image import ImageLock, ImageRecipe
from sandbox.model.task import ImagePin, RepoPin
from sandbox.runtime.image.build import Progress
from sandbox.runtime.image.resolve import relock
from sandbox.runtime.repo.pins import Repos
from sandbox.runtime.store import Store

_IMAGE = "python-3.11"
_CLOCK = "2024-05-15T12:00:00Z"
"""Midweek, mid-month, noon: minutes of ticking cross no boundary."""


def image_lock_path(home: Path, name: str) -> Path:
    return home / "repos" / "images" / f"{name}.lock.json"


def lock_image(store: Store, home: Path, name: str, progress: Progress) -> ImageLock:
    """Lock the recipe to what the archives have today; writes <name>.lock.json."""
    recipe = yamlfile.load(home / "repos" / "images" / f"{name}.yaml", ImageRecipe)
    base = None
    if recipe.base:
        base = jsonfile.load(locate(home, f"repos/images/{recipe.base}.lock.json"), ImageLock)
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


def new_task(store: Store, home: Path, task: str) -> list[Path]:
    """Write a sound little task into `home`; returns its files. Raises UserError."""
    files = task_files(task)
    there = [p for p in (*files, f"task_specs/{task}/task.yaml") if (home / p).exists()]
    if there:
        raise UserError(f"{home / there[0]} exists already", hint="choose another id")
    for name, text in files.items():
        jsonfile.write(home / name, text)
    source = RepoSource(commit="0" * 40, tree="0" * 40, folder=FolderSource(path=task))
    pin = Repos(store, home / "repos", {task: source}).pin_of(task)
    lock = home / "repos" / "lock.yaml"
    before = lock.read_text(encoding="utf-8") if lock.exists() else "schema: 1\nrepos:\n"
    jsonfile.write(lock, before.rstrip("\n") + "\n" + repo_entry(task, pin))
    bundle = tree_digest(folder_entries(home / "verifiers" / task / "bundle"))
    image = jsonfile.load(locate(home, f"repos/images/{_IMAGE}.lock.json"), ImageLock)
    path = home / "task_specs" / task / "task.yaml"
    pinned = ImagePin(name=_IMAGE, digest=image.config_digest)
    jsonfile.write(path, task_yaml(task, pin, pinned, bundle, _CLOCK))
    return [path, *(home / name for name in files), lock]
