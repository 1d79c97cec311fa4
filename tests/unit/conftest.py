"""Unit tests: no box, no network but loopback, nothing written outside tmp_path."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.runtime.store import Store
from tests.support.jobs import Terminal


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """repos/, with a folder that holds one of everything."""
    project = tmp_path / "repos" / "project"
    (project / "src" / "__pycache__").mkdir(parents=True)
    (project / "src" / "__pycache__" / "a.pyc").write_bytes(b"x")
    (project / "src" / "a.py").write_bytes(b"a = 1\r\n")
    (project / "src" / "run").write_bytes(b"#!/bin/sh\n")
    (project / "src" / "run").chmod(0o755)
    (project / "link").symlink_to("src/a.py")
    (project / 'odd "name"\n\t').write_bytes(b"")
    (project / os.fsdecode(b"\xff")).write_bytes(bytes(range(256)))
    (project / ".gitattributes").write_text("* text=auto eol=crlf ident\n")
    (project / ".gitignore").write_text("*.py\n")
    return tmp_path / "repos"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """With a bash on it that runs jobs."""
    made = Terminal(tmp_path)
    yield made
    made.close()
