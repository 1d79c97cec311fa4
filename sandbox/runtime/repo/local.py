"""A repository of this machine, looked at where it lies: nothing of it is copied or changed."""

from collections.abc import Iterable
from pathlib import Path

from sandbox.errors import Fault, UserError
from sandbox.formats.digest import Entry
from sandbox.model.task import RepoPin
from sandbox.runtime.repo.gitcmd import git_text, run_git
from sandbox.runtime.repo.pins import Pinned, committed, read_files


class LocalRepo:
    """A clone, bare or not."""

    def __init__(self, path: Path) -> None:
        """Raises UserError for what is none."""
        self.path = path = path.resolve()  # git is run elsewhere
        self._git = path / ".git" if (path / ".git").is_dir() else path
        if not (self._git / "objects").is_dir():
            raise UserError(f"{path} is no git repository", hint="git clone --mirror makes one")

    def commit(self, *names: str) -> str:
        """The first of these that is a commit here, in full. Raises UserError."""
        for name in names:
            try:
                return git_text(self._git, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
            except Fault:
                continue
        raise UserError(f"{self.path} has no commit {' or '.join(names)}")

    def at(self, commit: str) -> "Snapshot":
        """Raises UserError when it has no such commit."""
        try:
            tree = git_text(self._git, "rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
        except Fault:
            raise UserError(
                f"{self.path} has no commit {commit}", hint="is it a full clone?"
            ) from None
        return Snapshot(self._git, RepoPin(name=self.path.name, commit=commit, tree=tree))


class Snapshot:
    """The files of one commit."""

    def __init__(self, git: Path, pin: RepoPin) -> None:
        self.pin = pin
        self._pinned = Pinned(git, pin)
        listed = run_git(git, "ls-tree", "-r", "-z", "--full-tree", pin.commit)
        heads = [line.partition(b"\t") for line in listed.split(b"\0")[:-1]]
        modes = {raw.decode("utf-8", "surrogateescape"): head[:6] for head, _, raw in heads}
        self.names = frozenset(name for name, mode in modes.items() if mode != b"160000")
        self.submodules = sorted(modes.keys() - self.names)

    @property
    def seconds(self) -> int:
        """When it was committed, since the epoch."""
        return committed(self._pinned)

    def files(self, paths: Iterable[str]) -> dict[str, Entry]:
        """Those of these files, or below these folders, that are there."""
        wanted = sorted(set(paths))
        if not wanted:
            return {}
        return {e.path: e for e in read_files(self._pinned, wanted, missing_ok=True)}
