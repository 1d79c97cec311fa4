"""Whatever was done to the files of a box, a copy of it has the same, and nothing else changed."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.spec import BoxSpec

HAVOC = (Path(__file__).parent.parent / "support" / "havoc.py").read_bytes()
ACTS = "150"


@pytest.fixture
def program() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("havoc.py")
        info.size = len(HAVOC)
        tar.addfile(info, io.BytesIO(HAVOC))
    return out.getvalue()


def listing(box: Box, program: bytes) -> dict[str, Any]:
    box.put(program, "/tmp")
    done = box.exec(["python3", "-B", "/tmp/havoc.py", "list"], seconds=120, output_bytes=1 << 26)
    assert done.exit_code == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_fork_has_the_same_files(runtime: Runtime, spec: BoxSpec, program: bytes, seed: int):
    if not runtime.capabilities().snapshot:
        pytest.skip(f"{runtime.name} makes no snapshots here")
    with runtime.create(spec) as box:
        before = listing(box, program)
        command = ["python3", "-B", "/tmp/havoc.py", "do", str(seed), ACTS]
        done = box.exec(command, seconds=120)
        assert done.exit_code == 0, done.stderr.decode()
        after = listing(box, program)
        with box.fork() as other:
            assert listing(other, program) == after
        changed = {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)}
        told = {c.path for c in box.changes()}
        assert {p for p in changed if not covered(p, told)} == set()
        box.reset()
        assert box.changes() == []
        assert listing(box, program) == before


def covered(path: str, told: set[str]) -> bool:
    """Is it told, or something above it that is gone or new?"""
    parts = path.split("/")
    return any("/".join(parts[:n]) in told for n in range(2, len(parts) + 1))
