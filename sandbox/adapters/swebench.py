"""Data sets of the SWE-bench family become tasks: one for each instance that can run here.

An instance is imported when its repository lies on this machine and its tests are pytest's. Its own
image is not used: the task gets a pinned one of ours. Whether the tests pass in it is found out when
it is tried, here or by `stillroom check`. For all others the report says why.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sandbox.adapters.importing import Converted, Fate, ImportReport, NotHere
from sandbox.adapters.swebenchdraft import Drafted, Given, drafted, in_folder
from sandbox.adapters.swebenchrules import (
    commit_in_id,
    leaves_commit_open,
    obstacles,
    task_id,
)
from sandbox.adapters.swebenchtry import try_instance
from sandbox.adapters.taskhome import (
    is_there,
    origin_of,
    remove_task,
    require_free,
    write_entries,
    write_task,
)
from sandbox.errors import Fault, UserError
from sandbox.formats import jsonfile
from sandbox.formats.home import locate
from sandbox.formats.repofile import FolderSource, RepoSource
from sandbox.formats.swebench import Instance, Refused, read_dataset
from sandbox.formats.taskfile import load_task
from sandbox.model.image import ImageLock
from sandbox.model.task import ImagePin, TaskId
from sandbox.rollout.run import World
from sandbox.runtime.repo.local import LocalRepo
from sandbox.runtime.repo.pins import Repos
from sandbox.runtime.store import Store

_FIELDS: dict[str, tuple[str, str]] = {
    "instance_id": ("mapped", "the task's id, in small letters; as it is in origin.json"),
    "repo": ("mapped", "repos/lock.yaml, and `repo` of task.yaml"),
    "base_commit": ("mapped", "`repo.commit` of task.yaml"),
    "patch": ("mapped", "solution/solution.patch; of SWE-smith, the other way round"),
    "test_patch": ("mapped", "verifiers/<task>/bundle/: the files as they are after it"),
    "problem_statement": ("mapped", "instruction.md"),
    "requirements": ("mapped", "instruction.md"),
    "interface": ("mapped", "instruction.md"),
    "repo_language": ("mapped", "what the report says of tests that are not pytest's"),
    "FAIL_TO_PASS": ("mapped", "`scored` of checks.yaml: passed or failed as expected"),
    "PASS_TO_PASS": ("mapped", "`gates` of checks.yaml: passed, skipped or failed as expected"),
    "created_at": ("mapped", "`clock.at`: a midweek noon soon after it, and after all files"),
    "difficulty": ("mapped", "`metadata.difficulty`"),
    "eval_type": ("mapped", "a note, where it is fail_only"),
    "split": ("dropped", "a task is in no split"),
    "datasets": ("dropped", "a task is in no data set"),
    "hints_text": ("dropped", "said after the issue: an agent is not told"),
    "version": ("dropped", "written into origin.json; what is installed is what the image has"),
    "environment_setup_commit": ("dropped", "written into origin.json; an image is pinned instead"),
    "image": ("dropped", "written into origin.json; an image of ours is pinned instead"),
    "image_name": ("dropped", "written into origin.json; an image of ours is pinned instead"),
    "docker_image": ("dropped", "written into origin.json; an image of ours is pinned instead"),
    "dockerhub_tag": ("dropped", "written into origin.json; an image of ours is pinned instead"),
    "base_dockerfile": ("dropped", "an image of ours is pinned instead"),
    "instance_dockerfile": ("dropped", "an image of ours is pinned instead"),
    "eval_script": ("dropped", "a runner of ours runs the tests, in a clean box"),
    "before_repo_set_cmd": ("dropped", "the hidden tests are files, and put there without a program"),
    "selected_test_files_to_run": ("dropped", "the files of the listed tests are run"),
    "log_parser": ("dropped", "outcomes are recorded as such, and not read from a log"),
    "image_assets": ("refused", "links: what is behind them is not here"),
}  # fmt: skip
USUAL_IMAGE = "python-3.11"
_ALSO = {"fail_to_pass": "FAIL_TO_PASS", "pass_to_pass": "PASS_TO_PASS"}
_CLONE = "give a clone: --repos DIR with {} in it, or --repos {}=PATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What of this machine an import may use."""

    home: Path
    """Where tasks are written."""
    store: Store
    folders: tuple[Path, ...] = ()
    """In which clones lie: owner__name, owner/name or name; with or without `.git`."""
    repos: Mapping[str, Path] | None = None
    """owner/name → its clone."""
    image: str = USUAL_IMAGE
    images: Mapping[str, str] | None = None
    """owner/name → another image."""
    world: World | None = None
    """Where each is tried: what its reference does not resolve is no task here."""
    jobs: int = 1
    """How many are tried at once."""


def import_dataset(path: Path, shelf: Shelf) -> ImportReport:
    """Raises SpecError for what is no data set."""
    found = read_dataset(path)
    importer = _Importer(shelf)
    done = [importer.one(instance) for instance in found.instances]
    if shelf.world:  # not before all are written: a depot reads once which repositories there are
        trial = partial(_trial, home=shelf.home, world=shelf.world)
        with ThreadPoolExecutor(shelf.jobs) as threads:
            done = list(threads.map(trial, done))
    return ImportReport(
        source=str(path),
        read=len(found.instances) + len(found.refused),
        converted=tuple(d for d in done if isinstance(d, Converted)),
        not_here=(
            *(_unreadable(r) for r in found.refused),
            *(d for d in done if isinstance(d, NotHere)),
        ),
        fields=_fates(found.instances),
    )


def _with_commit(instance: Instance, clone: LocalRepo) -> Instance:
    """In a clone of the project there is the commit of the id; in one of the mirror, only its own."""
    if not leaves_commit_open(instance):
        return instance
    commit = clone.commit(commit_in_id(instance), "HEAD")
    note = f"`base_commit` is not said: {commit[:12]} of {clone.path} is taken"
    return replace(instance, base_commit=commit, notes=(*instance.notes, note))


def _unreadable(refused: Refused) -> NotHere:
    reasons = (f"it cannot be read: {refused.why}",)
    name = refused.instance_id
    return NotHere(name=name, where=refused.where, reasons=reasons, unread=True)


class _Importer:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._taken: dict[TaskId, str] = {}
        self._clones: dict[str, LocalRepo] = {}

    def one(self, instance: Instance) -> Converted | NotHere:
        name = task_id(instance.instance_id)
        reasons = list(obstacles(instance, tried=self._shelf.world is not None))
        if other := self._taken.get(name):
            reasons.append(f"its task's id would be that of `{other}`")
        self._taken.setdefault(name, instance.instance_id)
        try:
            clone = self._clone(instance)
        except UserError as e:
            reasons.append(_said(e))
        else:
            if not reasons:
                try:
                    return self._made(instance, name, clone)
                except (UserError, Fault) as e:
                    reasons.append(_said(e))
        return NotHere(
            name=instance.instance_id,
            where=instance.where,
            reasons=tuple(reasons),
            notes=instance.notes,
        )

    def _made(self, instance: Instance, name: TaskId, clone: LocalRepo) -> Converted:
        home = self._shelf.home
        require_free(home, name)
        if is_there(home, name):
            if origin_of(home, name).get("instance_id") != instance.instance_id:
                raise UserError(f"there is a task `{name}` in {home} that is not of this data set")
            return Converted(name=instance.instance_id, task=name, kept=True)
        image, epoch = self._image(instance)
        instance = _with_commit(instance, clone)
        at = clone.at(instance.base_commit)
        source = str(clone.path)
        made = drafted(
            Given(
                instance=instance,
                at=at,
                source=source,
                image=image,
                epoch=epoch,
                tried=self._shelf.world is not None,
            )
        )
        self._write(made, name)
        return Converted(name=instance.instance_id, task=name, notes=made.notes)

    def _write(self, made: Drafted, name: TaskId) -> None:
        home, draft = self._shelf.home, made.draft
        if made.world is not None:
            write_entries(home / "repos" / name, made.world)
            source = RepoSource(commit="0" * 40, tree="0" * 40, folder=FolderSource(path=name))
            pin = Repos(self._shelf.store, home / "repos", {name: source}).pin_of(name)
            draft = in_folder(draft, pin)
        write_task(home, draft)
        try:
            load_task(home, name)
        except UserError:
            remove_task(home, name)
            raise

    def _clone(self, instance: Instance) -> LocalRepo:
        """Raises UserError."""
        repo = instance.repo
        if repo not in self._clones:
            self._clones[repo] = LocalRepo(self._place(repo))
        return self._clones[repo]

    def _place(self, repo: str) -> Path:
        if found := (self._shelf.repos or {}).get(repo):
            return found
        both, name = repo.replace("/", "__"), repo.partition("/")[2]
        for folder in self._shelf.folders:
            for place in (both, repo, name, name.rpartition(".")[0]):
                for path in (folder / place, folder / f"{place}.git"):
                    if place and path.is_dir():
                        return path
        hint = _CLONE.format(both, repo)
        raise UserError(f"its repository {repo} is not on this machine", hint=hint)

    def _image(self, instance: Instance) -> tuple[ImagePin, int]:
        """Raises UserError."""
        name = (self._shelf.images or {}).get(instance.repo, self._shelf.image)
        path = locate(self._shelf.home, f"repos/images/{name}.lock.json")
        if not path.exists():
            raise UserError(f"there is no image `{name}`", hint=f"stillroom lock image {name}")
        lock = jsonfile.load(path, ImageLock)
        return ImagePin(name=name, digest=lock.config_digest), lock.epoch


def _trial(one: Converted | NotHere, *, home: Path, world: World) -> Converted | NotHere:
    """What was there before is left there, whatever is found out."""
    if isinstance(one, NotHere):
        return one
    world.observer.preparing(f"trying {one.task}", 0, 1)
    try:
        notes = try_instance(home, one.task, world)
    except (UserError, Fault) as e:
        where = str(home / "task_specs" / one.task)
        if not one.kept:
            remove_task(home, one.task)
        return NotHere(name=one.name, where=where, reasons=(_said(e),), notes=one.notes)
    return replace(one, notes=(*one.notes, *notes))


def _said(error: UserError | Fault) -> str:
    return f"{error} ({error.hint})" if error.hint else str(error)


def _fates(instances: Iterable[Instance]) -> tuple[Fate, ...]:
    counts: dict[str, int] = {}
    for instance in instances:
        for key in instance.given:
            name = _ALSO.get(key, key)
            counts[name] = counts.get(name, 0) + 1
    unknown = ("dropped", "not known here")
    return tuple(
        Fate(field=name, fate=fate, why=why, count=count)  # type: ignore[arg-type]  # of _FIELDS
        for name, count in counts.items()
        for fate, why in (_FIELDS.get(name, unknown),)
    )
