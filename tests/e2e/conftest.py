"""The command as a person runs it: in an empty folder, as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox.runtime.store import Store, default_store


@dataclass(frozen=True, slots=True)
class Done:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Stillroom = Callable[..., Done]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "sandbox", *arguments]


def started(folder: Path, program: Sequence[str], *, stdin: str = "", seconds: float = 280) -> Done:
    done = subprocess.run(
        program,
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def store() -> Store:
    """The user's own: images and repositories in it are pinned, so sharing them is safe."""
    return default_store(os.environ)


@pytest.fixture
def stillroom(tmp_path: Path) -> Stillroom:
    def run(*arguments: str, stdin: str = "", seconds: float = 280) -> Done:
        return started(tmp_path, command(*arguments), stdin=stdin, seconds=seconds)

    return run
