"""A person lists packages for a task, and finds them pinned."""

from pathlib import Path

import pytest

from sandbox.formats import indexfile
from sandbox.formats.taskfile import load_task
from sandbox.model.index import LOCK_NAME
from tests.e2e.conftest import Stillroom

pytestmark = [pytest.mark.network]


@pytest.fixture
def task(stillroom: Stillroom) -> str:
    assert stillroom("new", "my-task").status == 0
    return "my-task"


def test_packages_are_listed_at_the_task_s_date_and_pinned(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    done = stillroom("record", task, "--pip", "idna==3.7", "--pip", "sniffio==1.3.1")
    assert done.status == 0, done.err
    assert "index.lock.jsonl: 2 packages, 2 of them new" in done.out
    spec = load_task(tmp_path, task)
    assert (spec.network.mode, spec.network.cassette) == ("replay", "cassette")
    path = tmp_path / "task_specs" / task / "cassette" / LOCK_NAME
    lock = indexfile.load(path)
    assert lock.head.pin == spec.clock.at
    assert [p.name for p in lock.pins] == ["idna", "sniffio"]
    again = stillroom("record", task, "--pip", "idna==3.7")
    assert "2 packages, 0 of them new" in again.out
    assert "(pinned already)" in again.out
    assert indexfile.load(path) == lock


def test_apt_s_packages_need_an_image_in_which_apt_can_install(stillroom: Stillroom, task: str):
    done = stillroom("record", task, "--apt", "hello")
    assert done.status == 3
    assert "apt can install nothing in image python-3.11" in done.err
    assert "leave_out" in done.err


def test_an_option_is_no_package(stillroom: Stillroom, task: str):
    done = stillroom("record", task, "--pip=--index-url=http://localhost/")
    assert done.status == 2
    assert "not a package for pip" in done.err
