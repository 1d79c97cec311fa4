"""Everything a task needs, had and verified before it starts: image, repository, hidden tests."""

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbox.errors import ImageFault, SpecError, VerifierFault
from sandbox.formats import jsonfile
from sandbox.formats.digest import Entry, folder_entries, tree_digest
from sandbox.formats.home import locate
from sandbox.formats.layerfile import load_layers
from sandbox.formats.patch import parse
from sandbox.formats.patchapply import outcome
from sandbox.formats.patchlines import PatchError
from sandbox.formats.patchwrite import make_patch
from sandbox.formats.repofile import load_repo_lock
from sandbox.model.image import ImageLock
from sandbox.model.layers import BARE, Layers
from sandbox.model.task import Digest, TaskSpec
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.image.rooted import rooted_files
from sandbox.runtime.network import cassette
from sandbox.runtime.network.cassette import Cassette
from sandbox.runtime.repo.pins import Pinned, Repos, committed, read_files
from sandbox.runtime.repo.worktree import seed
from sandbox.runtime.spec import Image, Seed
from sandbox.runtime.store import Store

_IMAGES = "`image.name` of task.yaml names a lock of repos/images/"
_PATCH_BYTES = 1 << 28
_REMEMBERED = 64
"""Tasks whose supplies are kept in memory."""

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, how much there is."""


@contextmanager
def temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplies:
    """For one task. `tests`, `runners` and `layers` must never come near the agent's box."""

    image: Image
    repo: Pinned
    seed: Seed
    base: tuple[Entry, ...]
    """The pinned files within the submission's paths: the repository's, and rooted ones of the image."""
    tests: tuple[Entry, ...]
    """The hidden tests, relative to the working directory."""
    runners: Mapping[str, bytes]
    """File of verifiers/_runners/ → its content: what runs the tests in the box."""
    layers: Layers = BARE
    secret: bytes = b""
    """Of this machine: coins are drawn with it."""
    scratch: Callable[[], AbstractContextManager[Path]] = temporary
    """Makes a folder for what a box is shown of this machine; gone afterwards."""

    @property
    def runner_digest(self) -> Digest:
        """Of all that runs the tests in the box."""
        return _digest_of_runners(self.runners)


def runner_files(home: Path) -> dict[str, bytes]:
    """File of verifiers/_runners/ → its content."""
    return {e.path: e.data for e in folder_entries(locate(home, "verifiers/_runners"))}


def runner_digest(home: Path) -> Digest:
    """What `Supplies.runner_digest` is for tasks of this home."""
    return _digest_of_runners(runner_files(home))


def _digest_of_runners(files: Mapping[str, bytes]) -> Digest:
    return tree_digest(Entry(name, "file", data) for name, data in files.items())


class Depot:
    """Where supplies come from. Safe to use from several threads and processes."""

    def __init__(self, store: Store, progress: Progress) -> None:
        self.store = store
        self._progress = progress
        self._repos: dict[str, Repos] = {}
        self._images: dict[str, Image] = {}
        self._cassettes: dict[str, Cassette] = {}
        self._supplied: OrderedDict[str, Supplies] = OrderedDict()
        self._lock = threading.RLock()

    def supply(self, task: TaskSpec) -> Supplies:
        """Raises ImageFault, RepoFault, VerifierFault or NetworkFault."""
        with self._lock:
            if found := self._supplied.get(task.digest):
                self._supplied.move_to_end(task.digest)
                return found
            found = self._supplied[task.digest] = self._supply(task)
            if len(self._supplied) > _REMEMBERED:
                self._supplied.popitem(last=False)
            return found

    def _supply(self, task: TaskSpec) -> Supplies:
        home = Path(task.home)
        repo = self._repos_of(home).ensure(task.repo)
        image = self.image(home, task.image.name, task.image.digest)
        return Supplies(
            image=image,
            repo=repo,
            seed=seed(self.store, repo, task.workdir),
            base=(*_pinned_files(repo, task), *rooted_files(image, task)),
            tests=tuple(self.bundle(task)),
            runners=runner_files(home),
            layers=load_layers(task),
            secret=self.store.secret(),
            scratch=self.store.scratch,
        )

    def image(self, home: Path, name: str, digest: str) -> Image:
        """The image of this name, if it is the one that is pinned."""
        if found := self._images.get(digest):
            return found
        path = locate(home, f"repos/images/{name}.lock.json")
        if not path.exists():
            raise SpecError(f"there is no image `{name}`", where=str(path), hint=_IMAGES)
        lock = jsonfile.load(path, ImageLock)
        image = ensure(self.store, lock, self._progress, home=home, engine=_from_engine)
        if image.digest != digest:
            raise ImageFault(
                f"image `{name}` is {image.digest}, but the task pins {digest}",
                hint="check the image the task was made with, then pin the new one",
                retry=False,
            )
        return self._images.setdefault(digest, image)

    def newest(self, task: TaskSpec) -> dict[str, int]:
        """When the newest file was made of what a box starts with: in seconds since the epoch.

        What is put there later is dated 2000, before any task's clock.
        """
        home = Path(task.home)
        lock = jsonfile.load(locate(home, f"repos/images/{task.image.name}.lock.json"), ImageLock)
        repo = self._repos_of(home).ensure(task.repo)
        return {
            f"image `{task.image.name}`": lock.epoch,
            f"repository `{task.repo.name}`": committed(repo),
        }

    def bundle(self, task: TaskSpec) -> list[Entry]:
        """The hidden tests, if they are what the task pins."""
        spec, entries = task.verifier.bundle, self.hidden_tests(task)
        if (found := tree_digest(entries)) != spec.digest:
            raise VerifierFault(
                f"refused: the hidden tests of `{task.id}` are {found}, not {spec.digest} as pinned",
                hint=f"if the change is meant: stillroom lock task {task.id}",
                retry=False,
            )
        return entries

    def cassette(self, task: TaskSpec) -> Cassette | None:
        """What the agent's box is answered, if that is what the task pins; None without a cassette.

        Raises SpecError or NetworkFault. Looked at once: a body is read again only to be sent.
        """
        if task.network.cassette is None:
            return None
        with self._lock:
            if found := self._cassettes.get(task.digest):
                return found
            folder = Path(task.home) / "task_specs" / task.id / task.network.cassette
            made = cassette.load(folder, self.store, self._progress, digest=task.network.digest)
            return self._cassettes.setdefault(task.digest, made)

    def hidden_tests(self, task: TaskSpec) -> list[Entry]:
        """The hidden tests as they are, pinned or not."""
        spec, home = task.verifier.bundle, Path(task.home)
        found: dict[str, Entry] = {}
        if spec.repo:
            repo, both = self._repos_of(home).ensure(spec.repo), bool(spec.folder)
            found |= {e.path: e for e in read_files(repo, spec.paths, missing_ok=both)}
        if spec.folder:
            folder = home / "verifiers" / task.id / spec.folder
            found |= {e.path: e for e in folder_entries(folder)}
        for path in found:
            # Nothing is made free there: what a submission has in the way would be a fault of ours.
            if not any(PurePosixPath(path).is_relative_to(p) for p in spec.paths):
                raise VerifierFault(
                    f"hidden test {path} of `{task.id}` lies outside of verifier.bundle.paths",
                    hint="name it there, or the folder in which it lies",
                    retry=False,
                )
        return list(found.values())

    def solution(self, task: TaskSpec, supplies: Supplies) -> bytes:
        """The reference solution as a patch."""
        spec = task.solution
        home = Path(task.home)
        if spec.patch:
            return (home / "task_specs" / task.id / spec.patch).read_bytes()
        if spec.repo is None:
            return b""
        fixed = self._repos_of(home).ensure(spec.repo)
        paths = spec.paths or (() if task.submission.whole else task.submission.inner)
        pinned = {e.path for e in supplies.base}
        before, after = (
            [
                e
                for e in read_files(r, paths, missing_ok=True)
                if task.submission.takes(e.path, pinned)
            ]
            for r in (supplies.repo, fixed)
        )
        return make_patch(before, after)

    def solved(self, task: TaskSpec, supplies: Supplies) -> list[Entry]:
        """The files that a submission may change, as the reference solution leaves them."""
        pinned = {e.path for e in supplies.base}
        base = {e.path: e for e in (*read_files(supplies.repo), *supplies.base)}
        patch = self.solution(task, supplies)
        rooted = bool(task.submission.rooted)
        try:
            changes = parse(patch, max_bytes=_PATCH_BYTES, rooted=rooted)
            made = outcome(changes, base, max_bytes=_PATCH_BYTES)
        except PatchError as e:
            raise VerifierFault(
                f"the reference solution of `{task.id}` does not apply: {e}", retry=False
            ) from None
        after = {**base, **{e.path: e for e in made.files}}
        left = [e for path, e in sorted(after.items()) if path not in made.removed]
        return [e for e in left if task.submission.takes(e.path, pinned)]

    def _repos_of(self, home: Path) -> Repos:
        key = str(home)
        if key not in self._repos:
            lock = load_repo_lock(home)
            self._repos[key] = Repos(self.store, home / "repos", dict(lock.repos))
        return self._repos[key]


def _pinned_files(repo: Pinned, task: TaskSpec) -> list[Entry]:
    """Of the repository. No paths would mean all of it."""
    if task.submission.whole:
        return read_files(repo)
    paths = task.submission.inner
    return read_files(repo, paths, missing_ok=True) if paths else []


def _from_engine(lock: ImageLock, folder: Path, progress: Progress) -> None:
    """Imported when it comes to that: the engine's library is slow to load."""
    from sandbox.runtime.elsewhere import from_engine  # noqa: PLC0415

    from_engine(lock, folder, progress)
