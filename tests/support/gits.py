"""Real repositories for tests, made by the git of this machine with a clean configuration."""

import os
import subprocess
from pathlib import Path

from sandbox.model.task import RepoPin

CLEAN = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_AUTHOR_DATE": "1000000000 +0000",
    "GIT_COMMITTER_DATE": "1000000000 +0000",
    "LC_ALL": "C.UTF-8",
}


def git(folder: Path, *command: str, feed: bytes = b"") -> bytes:
    done = subprocess.run(
        ["git", *command], cwd=folder, input=feed, capture_output=True, check=False, env=CLEAN
    )
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def text(folder: Path, *command: str) -> str:
    return git(folder, *command).decode().strip()


def commit(folder: Path, message: str = "x") -> str:
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return text(folder, "rev-parse", "HEAD")


def pin(folder: Path, name: str, commit: str) -> RepoPin:
    tree = text(folder, "rev-parse", f"{commit}^{{tree}}")
    return RepoPin(name=name, commit=commit, tree=tree)


def objects(git_folder: Path) -> set[str]:
    """Every object that is there, reachable or not."""
    said = text(
        git_folder, f"--git-dir={git_folder}", "cat-file", "--batch-all-objects",
        "--batch-check=%(objectname)",
    )  # fmt: skip
    return set(said.split())


def reachable(git_folder: Path, commit: str) -> set[str]:
    said = text(git_folder, f"--git-dir={git_folder}", "rev-list", "--objects", commit)
    return {line.split(" ")[0] for line in said.splitlines()}
