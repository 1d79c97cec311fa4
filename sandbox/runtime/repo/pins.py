"""The pinned repositories of a repos/ folder, by name: obtained once, verified on every use."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import RepoFault, SpecError
from sandbox.formats.digest import Entry
from sandbox.formats.repofile import RepoSource
from sandbox.model.task import RepoPin
from sandbox.runtime.repo.gitcmd import MODES, git_text, run_git
from sandbox.runtime.repo.sources import import_source
from sandbox.runtime.store import Store

_KINDS = {mode: kind for kind, mode in MODES.items()}


@dataclass(frozen=True, slots=True)
class Pinned:
    """A repository in the store that has been found to be what its pin says."""

    folder: Path
    pin: RepoPin


class Repos:
    """The repositories of one repos/ folder, by name. Safe to use from several processes."""

    def __init__(self, store: Store, home: Path, sources: dict[str, RepoSource]) -> None:
        self._store = store
        self._home = home
        self._sources = sources
        self._verified: dict[RepoPin, Pinned] = {}

    def ensure(self, pin: RepoPin) -> Pinned:
        """Fetch or find it, and verify it. Raises RepoFault or NetworkFault."""
        if found := self._verified.get(pin):
            return found
        source = self._sources.get(pin.name)
        if source is None:
            raise RepoFault(
                f"`{pin.name}` is not in {self._home / 'lock.yaml'}",
                hint="known: " + ", ".join(sorted(self._sources)),
                retry=False,
            )
        if (source.commit, source.tree) != (pin.commit, pin.tree):
            raise RepoFault(
                f"`{pin.name}` is pinned to commit {pin.commit}, tree {pin.tree}, but "
                f"{self._home / 'lock.yaml'} says {source.commit}, {source.tree}",
                retry=False,
            )
        if source.folder:
            self._require_unchanged(pin)
        folder = self._store.root / "repos" / f"{pin.commit}.git"
        with self._store.lock(f"repo-{pin.commit}"):
            if not folder.exists():
                self._obtain(source, pin, folder)
        verify(folder, pin)
        return self._verified.setdefault(pin, Pinned(folder, pin))

    def pin_of(self, name: str) -> RepoPin:
        """Obtain a repository without a pin, to make one: for `stillroom lock`."""
        source = self._sources[name]
        with self._store.scratch() as scratch:
            commit = import_source(self._store, self._home, source, name, scratch / "repo.git")
            tree = git_text(scratch / "repo.git", "rev-parse", f"{commit}^{{tree}}")
        return RepoPin(name=name, commit=commit, tree=tree)

    def _require_unchanged(self, pin: RepoPin) -> None:
        """Own files are edited in place: a run must not quietly go on with what they were."""
        if self.pin_of(pin.name).commit != pin.commit:
            raise SpecError(
                f"the files of `{pin.name}` are not those that its pin names",
                where=str(self._home / "lock.yaml"),
                hint=f"if the change is meant: stillroom lock repo {pin.name}",
            )

    def _obtain(self, source: RepoSource, pin: RepoPin, folder: Path) -> None:
        with self._store.scratch() as scratch:
            fresh = scratch / "repo.git"
            commit = import_source(self._store, self._home, source, pin.name, fresh)
            if commit != pin.commit:
                raise RepoFault(
                    f"refused: `{pin.name}` gives commit {commit}, not {pin.commit} as pinned",
                    retry=False,
                )
            verify(fresh, pin)
            folder.parent.mkdir(parents=True, exist_ok=True)
            fresh.rename(folder)


def verify(folder: Path, pin: RepoPin) -> None:
    """Every object hashes to its name, and the commit has the pinned tree. Raises RepoFault."""
    hint = f"the stored copy was changed; remove it and run again: rm -r {folder}"
    try:
        tree = git_text(folder, "rev-parse", "--verify", f"{pin.commit}^{{tree}}")
        run_git(folder, "fsck", "--full", "--no-dangling", "--no-progress")
    except RepoFault as e:
        raise RepoFault(f"refused: `{pin.name}` is damaged: {e}", hint=hint, retry=False) from e
    if tree != pin.tree:
        raise RepoFault(
            f"refused: `{pin.name}` has tree {tree}, not {pin.tree} as pinned",
            hint=hint,
            retry=False,
        )


def committed(repo: Pinned) -> int:
    """When the pinned commit was made, in seconds since the epoch: all of its files have that time."""
    return int(git_text(repo.folder, "show", "-s", "--format=%ct", repo.pin.commit))


def read_files(repo: Pinned, paths: Iterable[str] = (), *, missing_ok: bool = False) -> list[Entry]:
    """The files of the pinned tree, or those at and below `paths`. Raises RepoFault."""
    listed = run_git(repo.folder, "ls-tree", "-r", "-z", "--full-tree", repo.pin.commit)
    wanted = tuple(paths)
    found = []
    for line in listed.split(b"\0")[:-1]:
        head, _, raw = line.partition(b"\t")
        mode, _, blob = head.decode().split(" ")
        path = raw.decode("utf-8", "surrogateescape")
        if mode in _KINDS and (not wanted or within(path, wanted)):
            found.append((path, _KINDS[mode], blob))
    for path in wanted:
        if not missing_ok and not any(within(name, (path,)) for name, _, _ in found):
            raise RepoFault(f"`{repo.pin.name}` has no `{path}`", retry=False)
    contents = _blobs(repo.folder, [blob for _, _, blob in found])
    return [
        Entry(path, kind, data)  # type: ignore[arg-type]  # the kinds are MODES' keys
        for (path, kind, _), data in zip(found, contents, strict=True)
    ]


def within(path: str, tops: Iterable[str]) -> bool:
    """Is `path` one of `tops` or below one?"""
    return any(path == top or path.startswith(f"{top}/") for top in tops)


def _blobs(folder: Path, ids: list[str]) -> list[bytes]:
    raw = run_git(folder, "cat-file", "--batch", feed="".join(f"{i}\n" for i in ids).encode())
    found, at = [], 0
    for blob in ids:
        end = raw.index(b"\n", at)
        head = raw[at:end].decode().split(" ")
        if head[:2] != [blob, "blob"]:
            raise RepoFault(f"object {blob} is not there: {' '.join(head)}", retry=False)
        size = int(head[2])
        found.append(raw[end + 1 : end + 1 + size])
        at = end + 1 + size + 1
    return found
