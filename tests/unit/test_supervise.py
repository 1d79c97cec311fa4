"""What the supervisor keeps, hands on and gets ready. That it kills is for boxes: tests/e2e."""

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

FILE = Path(__file__).resolve().parents[2] / "verifiers" / "_runners" / "supervise.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("supervise", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


supervise: Any = load()
SMALL = 128 << 10


@given(st.lists(st.integers(0, 3 * SMALL), max_size=8))
def test_of_a_log_the_beginning_and_the_end_are_kept(sizes):
    log = supervise.Log()
    everything = b""
    for n, size in enumerate(sizes):
        data = bytes([97 + n]) * size
        everything += data
        log.add(data)
    text = log.text()
    if len(everything) <= 2 * SMALL:
        assert text == everything
    else:
        assert text.startswith(everything[:SMALL])
        assert text.endswith(everything[-SMALL:])
        left_out = len(everything) - 2 * SMALL
        assert b"[%d bytes are left out]" % left_out in text


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_whatever_a_runner_writes_is_handed_on_behind_dots(chunks):
    written: list[bytes] = []
    own = supervise._write
    supervise._write = lambda _, data: written.append(data)
    try:
        records = supervise.Records(look=True)
        for chunk in chunks:
            records.add(chunk)
    finally:
        supervise._write = own
    whole = b"".join(chunks)
    told = b"".join(written).split(b"\n")[:-1]
    assert all(line.startswith(b".") for line in told)
    assert [line[1:] for line in told] == whole.split(b"\n")[:-1]


def records_of(*told: object) -> Any:
    records = supervise.Records(look=True)
    records.add(b"".join(json.dumps(t).encode() + b"\n" for t in told))
    return records


def test_the_check_that_is_running_is_known(capfd):
    begun = records_of({"begin": "a"}, {"check": "a", "outcome": "passed"}, {"begin": "b"}, 7, [])
    assert (begun.running, begun.done) == ("b", ["a"])
    assert records_of({"begin": "a"}, {"check": "a"}).running is None
    capfd.readouterr()


@pytest.mark.parametrize("data", [b"\n" * 200_001, b"x" * (5 << 20), (b"x" * 99 + b"\n") * 600_000])
def test_too_much_of_anything_is_a_flood(capfd, data):
    records = supervise.Records(look=False)
    records.add(data)
    assert records.flooded
    assert capfd.readouterr().out == ""


def test_a_place_is_got_ready_for_somebody_who_may_add_and_not_change(tmp_path: Path):
    kept = [
        "src/a.py",
        "src/pinned/conftest.py",
        "tests/conftest.py",
        "tests/__pycache__/t.pyc",
        "more/conftest.py",
    ]
    gone = ["conftest.py", "src/conftest.py", "src/__pycache__/a.cpython-311.pyc", "src/b.pyo"]
    for name in [*kept, *gone, ".git/hooks/conftest.py", "data/out.txt"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch(0o644)
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir(mode=0o755)
    (outside / "conftest.py").touch()
    (tmp_path / "link").symlink_to(outside)
    user = f"{os.getuid() or 65534}:{os.getgid() or 65534}"
    supervise.prepare(
        {
            "workdir": str(tmp_path),
            "user": user,
            "sealed": [str(tmp_path / "tests"), str(tmp_path / "more/conftest.py")],
            "keep": [str(tmp_path / "src/pinned/conftest.py")],
            "writable": [str(tmp_path / "data"), str(tmp_path / "link"), str(tmp_path / "none")],
        }
    )
    assert [n for n in [*kept, ".git/hooks/conftest.py"] if not (tmp_path / n).exists()] == []
    assert [n for n in gone if (tmp_path / n).exists()] == []
    assert (outside / "conftest.py").exists()
    modes = {n: (tmp_path / n).stat().st_mode & 0o7777 for n in (".", "src", "tests", "src/a.py")}
    assert (modes["."], modes["src"]) == (0o1777, 0o1777)
    assert (modes["tests"] & 0o1022, modes["src/a.py"] & 0o022) == (0, 0)
    if os.getuid() == 0:
        assert (tmp_path / "data/out.txt").stat().st_uid == 65534
        assert (tmp_path / "src/a.py").stat().st_uid == outside.stat().st_uid == 0
