"""Making pins: lock an image again, find a repository's commit and tree."""

import re
from collections.abc import Callable
from pathlib import Path

from sandbox.errors import SpecError, UserError
from sandbox.formats import jsonfile, yamlfile
from sandbox.formats.digest import folder_entries, tree_digest
from sandbox.formats.home import bundled_home, locate
from sandbox.formats.imagefile import load_recipe
from sandbox.formats.repofile import FolderSource, RepoSource, load_repo_lock
from sandbox.formats.skeleton import repo_entry, task_files, task_yaml
from sandbox.model.image import ImageLock, ImageRecipe, ImageSource
from sandbox.model.task import ImagePin, RepoPin, TaskSpec
from sandbox.runtime.image.build import Progress
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.image.foreign import resolve
from sandbox.runtime.image.resolve import recipe_sha256, relock
from sandbox.runtime.repo.pins import Repos
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot

_IMAGE = "python-3.11"
_CLOCK = "2024-05-15T12:00:00Z"
"""Midweek, mid-month, noon: minutes of ticking cross no boundary."""


def image_lock_path(home: Path, name: str) -> Path:
    return home / "repos" / "images" / f"{name}.lock.json"


def lock_image(store: Store, home: Path, name: str, progress: Progress) -> ImageLock:
    """Lock the recipe to what there is today; writes <name>.lock.json."""
    recipe = load_recipe(home, name)
    if recipe.source:
        lock = _lock_foreign(store, home, name, recipe.source, progress)
    else:
        lock = relock(store, name, recipe, _base(home, name, recipe), progress, home)
    jsonfile.write(image_lock_path(home, name), jsonfile.dumps(lock))
    return lock


def _base(home: Path, name: str, recipe: ImageRecipe) -> ImageLock | None:
    if recipe.base is None:
        return None
    base = jsonfile.load(locate(home, f"repos/images/{recipe.base}.lock.json"), ImageLock)
    if base.config is not None:
        raise SpecError(
            f"`{recipe.base}` was made elsewhere and cannot be a `base`",
            where=str(home / "repos" / "images" / f"{name}.yaml"),
            hint="write a Dockerfile that starts from it; see `source`",
        )
    return base


def _lock_foreign(
    store: Store, home: Path, name: str, source: ImageSource, progress: Progress
) -> ImageLock:
    sha256 = recipe_sha256(ImageRecipe(schema=1, source=source), None)
    if source.dockerfile:
        # Imported when it comes to that: the engine's library is slow to load.
        from sandbox.runtime.elsewhere import lock_dockerfile  # noqa: PLC0415

        lock = lock_dockerfile(store, home, name, source, sha256, progress)
    else:
        lock = resolve(store, home, name, source, sha256, progress)
    ensure(store, lock, progress, home=home)  # can it be unpacked? Better asked now than in a run
    return lock


def repin_image(home: Path, name: str, digest: str) -> list[Path]:
    """Pin an image in every task of `home` that uses it; returns the files that changed."""
    pattern = re.compile(rf"(name: {re.escape(name)}\n\s+digest: )sha256:\w*")
    return _rewrite_tasks(home, lambda text: pattern.sub(rf"\g<1>{digest}", text))


def lock_repo(store: Store, home: Path, name: str) -> tuple[RepoPin, list[Path]]:
    """Pin a repository to what its source has now, in repos/lock.yaml and in every task."""
    path = home / "repos" / "lock.yaml"
    pin = pin_repo(store, home, name)
    entry = re.compile(rf"(?m)^  {re.escape(name)}:\n(?:(?:    .*)?\n)+")
    text = yamlfile.read_text(path)
    fresh = entry.sub(lambda found: _with_pin(found[0], pin), text + "\n").rstrip("\n") + "\n"
    changed = []
    if fresh != text:
        jsonfile.write(path, fresh)
        changed.append(path)
    named = re.compile(rf"name: {re.escape(name)}\n\s+commit: .*\n\s+tree: .*")
    return pin, changed + _rewrite_tasks(
        home, lambda text: named.sub(lambda found: _with_pin(found[0], pin), text)
    )


def lock_task(depot: Depot, task: TaskSpec) -> list[Path]:
    """Pin the hidden tests of a task to what they are now."""
    found = tree_digest(depot.hidden_tests(task))
    old = task.verifier.bundle.digest
    path = Path(task.home) / "task_specs" / task.id / "task.yaml"
    text = yamlfile.read_text(path)
    if found == old:
        return []
    jsonfile.write(path, text.replace(old, found))
    return [path]


def _with_pin(text: str, pin: RepoPin) -> str:
    text = re.sub(r"(\bcommit: ).*", rf'\g<1>"{pin.commit}"', text)
    return re.sub(r"(\btree: ).*", rf'\g<1>"{pin.tree}"', text)


def _rewrite_tasks(home: Path, change: Callable[[str], str]) -> list[Path]:
    changed = []
    for path in sorted((home / "task_specs").glob("*/task.yaml")):
        text = yamlfile.read_text(path)
        if (fresh := change(text)) != text:
            jsonfile.write(path, fresh)
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
    source = lock.repos[name]
    if source.git and not int(source.commit, 16):
        raise SpecError(
            f"`{name}` names no commit",
            where=str(home / "repos" / "lock.yaml"),
            hint=f"choose one and write it there: git ls-remote {source.git.url}",
        )
    return Repos(store, home / "repos", dict(lock.repos)).pin_of(name)


def new_task(store: Store, home: Path, task: str) -> list[Path]:
    """Write a sound little task into `home`; returns its files. Raises UserError."""
    files = task_files(task)
    if home != bundled_home() and (bundled_home() / "task_specs" / task).exists():
        raise UserError(f"`{task}` is a task that comes with Stillroom", hint="choose another id")
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
