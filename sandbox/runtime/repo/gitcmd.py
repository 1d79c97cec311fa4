"""Running git, through GitPython: bytes in, bytes out, and no configuration but our own."""

import io
import tempfile
from collections.abc import Iterable
from pathlib import Path

import git

from sandbox.errors import RepoFault
from sandbox.formats.digest import Entry

WHO = "Stillroom <stillroom@localhost>"
WHEN = "946684800 +0000"
"""2000-01-01: earlier than any task's clock, and the same on every machine."""
BRANCH = "main"
MODES = {"file": "100644", "exec": "100755", "link": "120000"}
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_ADVICE": "0",
    "LC_ALL": "C.UTF-8",
}
_ERROR_CHARACTERS = 2000


def run_git(folder: Path, *command: str, feed: bytes = b"", worktree: Path | None = None) -> bytes:
    """Run git on the repository in `folder`. Raises RepoFault with what git said."""
    runner = git.Git(str(worktree or folder))
    runner.update_environment(**_ENVIRONMENT, GIT_DIR=str(folder))
    if worktree:
        runner.update_environment(GIT_WORK_TREE=str(worktree))
    with tempfile.TemporaryFile() as source:
        source.write(feed)
        source.seek(0)
        try:
            out = runner.execute(
                ["git", *command],
                istream=source,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
            )
        except git.GitCommandError as e:
            said = str(e.stderr).strip()[-_ERROR_CHARACTERS:]
            raise RepoFault(f"git {command[0]}: {said or e.status}") from e
        except git.GitCommandNotFound as e:
            raise RepoFault("git is not installed", hint="apt-get install git", retry=False) from e
    assert isinstance(out, bytes)  # noqa: S101 - for the type checker: no string was asked for
    return out


def git_text(folder: Path, *command: str) -> str:
    return run_git(folder, *command).decode("utf-8", "replace").strip()


def init(folder: Path, *, bare: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kind = ["--bare"] if bare else []
    run_git(folder, "init", "--quiet", "--template=", f"--initial-branch={BRANCH}", *kind)


def commit_stream(branch: str, files: Iterable[Entry], message: str) -> bytes:
    """One commit in fast-import's language: contents byte for byte, no filter, no checkout."""
    out = io.BytesIO()
    said = message.encode()
    out.write(f"commit refs/heads/{branch}\ncommitter {WHO} {WHEN}\n".encode())
    out.write(b"data %d\n%s\n" % (len(said), said))
    for e in files:
        out.write(b"M %s inline %s\n" % (MODES[e.kind].encode(), _quoted(e.path)))
        out.write(b"data %d\n%s\n" % (len(e.data), e.data))
    out.write(b"done\n")
    return out.getvalue()


def _quoted(path: str) -> bytes:
    raw = path.encode("utf-8", "surrogateescape")
    return b'"%s"' % b"".join(
        b"\\%03o" % c if c < 33 or c > 126 or c in b'"\\' else b"%c" % c for c in raw
    )
