"""An agent's box to its submission: what is read of it, and what is rejected and no fault."""

from pathlib import Path

import pytest

from sandbox.formats.digest import Entry
from sandbox.grading.collect import collect
from sandbox.model.task import SubmissionSpec, TaskSpec
from sandbox.runtime.fake import NO_IMAGE, FakeBox, FakeRuntime
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.store import Store
from tests.support.homes import a_task, some_supplies


def a_box(task: TaskSpec, *entries: Entry) -> FakeBox:
    box = FakeRuntime().create(BoxSpec(image=NO_IMAGE, workdir=task.workdir))
    for e in entries:
        box.files[f"{task.workdir}/{e.path}"] = e
    return box


def test_nothing_left_behind_is_an_empty_submission(tmp_path: Path):
    task = a_task(tmp_path)
    box = a_box(task, Entry("src/a.py", "file", b"a = 1\n"), Entry("other", "file", b"x"))
    made = collect(box, task, some_supplies(task, tmp_path / "s"), Store(tmp_path / "store"))
    assert (made.patch, made.rejected) == (b"", "")


def test_the_agent_s_processes_are_dead_before_its_files_are_read(tmp_path: Path):
    task = a_task(tmp_path)
    box = a_box(task, Entry("src/a.py", "file", b"a = 1\n"))
    pty = box.open_pty(["bash"])
    collect(box, task, some_supplies(task, tmp_path / "s"), Store(tmp_path / "store"))
    assert pty.wait(5) == 129
    pty.close()


def test_more_than_is_allowed_is_rejected_and_no_fault(tmp_path: Path):
    task = a_task(tmp_path)
    big = (task.limits.submission_mib << 20) + 1
    box = a_box(task, Entry("src/a.py", "file", bytes(big)))
    made = collect(box, task, some_supplies(task, tmp_path / "s"), Store(tmp_path / "store"))
    assert made.patch == b""
    assert "16 MiB" in made.rejected


def test_names_that_lead_elsewhere_are_rejected_and_no_fault(tmp_path: Path):
    task = a_task(tmp_path)
    box = a_box(task)
    box.files["/work/toy/src/../x"] = Entry("x", "file", b"x")
    made = collect(box, task, some_supplies(task, tmp_path / "s"), Store(tmp_path / "store"))
    assert "cannot be read" in made.rejected


def test_submission_paths_below_a_folder_keep_their_names(tmp_path: Path):
    task = a_task(tmp_path, submission=SubmissionSpec(paths=("src/a.py", "none")))
    box = a_box(task, Entry("src/a.py", "file", b"a = 1\n"), Entry("src/b.py", "file", b"x"))
    made = collect(box, task, some_supplies(task, tmp_path / "s"), Store(tmp_path / "store"))
    assert (made.patch, made.rejected) == (b"", "")


@pytest.mark.parametrize("inner", ["src/.git/config", "src/.GIT", "src/a/.git/HEAD"])
def test_a_repository_in_the_submission_is_rejected_and_no_fault(tmp_path: Path, inner: str):
    task = a_task(tmp_path)
    box = a_box(task, Entry(inner, "file", b"x"))
    made = collect(box, task, some_supplies(task, tmp_path / "s"), Store(tmp_path / "store"))
    assert "repository" in made.rejected
