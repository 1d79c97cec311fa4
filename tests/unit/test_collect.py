"""An agent's box to its submission: what is read of it, and what is rejected and no fault."""

import tarfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from sandbox.formats.digest import Entry
from sandbox.grading.apply import applied
from sandbox.grading.collect import collect
from sandbox.model.record import Submission
from sandbox.model.task import SubmissionSpec, TaskSpec
from sandbox.runtime.fake import NO_IMAGE, FakeBox, FakeRuntime, no_reply
from sandbox.runtime.spec import BoxSpec
from tests.support.homes import a_task, some_supplies


def a_box(task: TaskSpec, *entries: Entry) -> FakeBox:
    box = FakeRuntime().create(BoxSpec(image=NO_IMAGE, workdir=task.workdir))
    for e in entries:
        box.files[f"{task.workdir}/{e.path}"] = e
    return box


def test_nothing_left_behind_is_an_empty_submission(tmp_path: Path):
    task = a_task(tmp_path)
    box = a_box(task, Entry("src/a.py", "file", b"a = 1\n"), Entry("other", "file", b"x"))
    made = collect(box, task, some_supplies(task, tmp_path / "s"))
    assert (made.patch, made.rejected) == (b"", "")


def test_the_agent_s_processes_are_dead_before_its_files_are_read(tmp_path: Path):
    task = a_task(tmp_path)
    box = a_box(task, Entry("src/a.py", "file", b"a = 1\n"))
    pty = box.open_pty(["bash"])
    collect(box, task, some_supplies(task, tmp_path / "s"))
    assert pty.wait(5) == 129
    pty.close()


def test_more_than_is_allowed_is_rejected_and_no_fault(tmp_path: Path):
    task = a_task(tmp_path)
    big = (task.limits.submission_mib << 20) + 1
    box = a_box(task, Entry("src/a.py", "file", bytes(big)))
    made = collect(box, task, some_supplies(task, tmp_path / "s"))
    assert made.patch == b""
    assert "16 MiB" in made.rejected


def test_names_that_lead_elsewhere_are_rejected_and_no_fault(tmp_path: Path):
    task = a_task(tmp_path)
    box = a_box(task)
    box.files["/work/toy/src/../x"] = Entry("x", "file", b"x")
    made = collect(box, task, some_supplies(task, tmp_path / "s"))
    assert "cannot be read" in made.rejected


def test_submission_paths_below_a_folder_keep_their_names(tmp_path: Path):
    task = a_task(tmp_path, submission=SubmissionSpec(paths=("src/a.py", "none")))
    box = a_box(task, Entry("src/a.py", "file", b"a = 1\n"), Entry("src/b.py", "file", b"x"))
    made = collect(box, task, some_supplies(task, tmp_path / "s"))
    assert (made.patch, made.rejected) == (b"", "")


MENDED = Entry("src/a.py", "file", b"a = 2\n")
LEFT_OUT: dict[str, tuple[tuple[Entry, ...], tuple[str, ...]]] = {
    # name: (what is there, what is named as left out)
    "a repository": (
        (Entry("src/.git/config", "file", b"x"), Entry("src/.git/HEAD", "file", b"x")),
        ("src/.git",),
    ),
    "a repository deeper": ((Entry("src/a/.git/HEAD", "file", b"x"),), ("src/a/.git",)),
    "a repository in capitals": ((Entry("src/.GIT", "file", b"x"),), ("src/.GIT",)),
    "a repository as NTFS has it": ((Entry("src/git~1/x", "file", b"x"),), ("src/git~1",)),
    "a repository's link file": ((Entry("src/b/.git", "file", b"gitdir: /x"),), ("src/b/.git",)),
    "an absolute link": ((Entry("src/l", "link", b"/etc/passwd"),), ("src/l",)),
    "a link up": ((Entry("src/l", "link", b"../../x"),), ("src/l",)),
    "a link down and up": ((Entry("src/l", "link", b"d/.."),), ("src/l",)),
    "a link to a repository": ((Entry("src/l", "link", b"../.git"),), ("src/l",)),
    "capitals": ((Entry("src/A.py", "file", b"x"),), ("src/A.py",)),
    "capitals of a folder": (
        (Entry("src/d/x", "file", b"x"), Entry("src/D/y", "file", b"x")), ("src/D/y", "src/d/x"),
    ),
    "normal forms": (
        (Entry("src/\u00e4", "file", b"x"), Entry("src/a\u0308", "file", b"x")),
        ("src/a\u0308", "src/\u00e4"),
    ),
    "a conftest": ((Entry("src/conftest.py", "file", b"x"),), ("src/conftest.py",)),
    "what starts with the interpreter": (
        (Entry("src/x.pth", "file", b"import os"), Entry("src/sitecustomize.py", "file", b"x")),
        ("src/sitecustomize.py", "src/x.pth"),
    ),
    "attributes": ((Entry("src/.gitattributes", "file", b"* filter=x"),), ("src/.gitattributes",)),
    "submodules": ((Entry("src/.gitmodules", "file", b"x"),), ("src/.gitmodules",)),
    "compiled code": ((Entry("src/a.so", "file", b"x"),), ("src/a.so",)),
    "a long name": ((Entry("src/" + "n" * 300, "file", b"x"),), ("src/" + "n" * 300,)),
    "a deep one": ((Entry("src/" + "d/" * 70 + "x", "file", b"x"),), ("src/" + "d/" * 70 + "x",)),
    "a backslash's way up": ((Entry("src/..\\x", "file", b"x"),), ("src/..\\x",)),
    "caches, of which nobody needs to know": ((Entry("src/a.pyc", "file", b"x"),), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_no_submission_may_have_is_left_out_and_the_rest_counts(tmp_path: Path, name: str):
    there, named = LEFT_OUT[name]
    task, supplies = a_task(tmp_path), some_supplies(a_task(tmp_path), tmp_path / "s")
    made = collect(a_box(task, MENDED, *there), task, supplies)
    assert (made.rejected, made.dropped) == ("", named)
    found = applied(task, supplies.base, made.patch)
    assert (found.refused, found.files, found.removed) == ("", (MENDED,), ())


def test_a_folder_in_a_file_s_place_is_left_out_and_the_file_is_gone(tmp_path: Path):
    task, supplies = a_task(tmp_path), some_supplies(a_task(tmp_path), tmp_path / "s")
    made = collect(a_box(task, Entry("src/a.py/b", "file", b"x")), task, supplies)
    assert made.dropped == ("src/a.py/b",)
    assert applied(task, supplies.base, made.patch).removed == ("src/a.py",)


def test_a_file_in_a_folder_s_place_is_left_out_and_the_folder_is_gone(tmp_path: Path):
    task = a_task(tmp_path)
    pinned = Entry("src/d/x", "file", b"x")
    supplies = replace(some_supplies(task, tmp_path / "s"), base=(pinned,))
    made = collect(a_box(task, Entry("src/d", "file", b"x")), task, supplies)
    assert made.dropped == ("src/d",)
    assert applied(task, supplies.base, made.patch).removed == ("src/d/x",)


def test_what_may_not_be_changed_stays_as_it_was_pinned(tmp_path: Path):
    task = a_task(tmp_path)
    pinned = (
        Entry("src/a.py", "file", b"a = 1\n"),
        Entry("src/conftest.py", "file", b"1"),
        Entry("src/l", "link", b"/opt/data"),
        Entry("src/setup.cfg", "file", b"1"),
    )
    supplies = replace(some_supplies(task, tmp_path / "s"), base=pinned)
    box = a_box(task, MENDED, Entry("src/conftest.py", "file", b"2"), pinned[2])
    made = collect(box, task, supplies)
    assert made.dropped == ("src/conftest.py", "src/setup.cfg")
    assert applied(task, supplies.base, made.patch).files == (MENDED,)


def test_a_name_that_changes_in_its_capitals_is_taken(tmp_path: Path):
    task, supplies = a_task(tmp_path), some_supplies(a_task(tmp_path), tmp_path / "s")
    made = collect(a_box(task, Entry("src/A.py", "file", b"a = 1\n")), task, supplies)
    assert made.dropped == ()
    assert applied(task, supplies.base, made.patch).removed == ("src/a.py",)


def test_reading_has_a_time_of_its_own(tmp_path: Path):
    task, supplies = a_task(tmp_path), some_supplies(a_task(tmp_path), tmp_path / "s")
    hours = count(0, 3600)
    made = collect(a_box(task, MENDED), task, supplies, ticks=lambda: next(hours))
    assert "cannot be read within 120 s" in made.rejected


class Streaming(FakeBox):
    """A box whose runtime gives it a stream that it should not."""

    stream = b""

    def get(self, path: str) -> Iterator[bytes]:
        del path
        return iter([self.stream])


def streamed(task: TaskSpec, folder: Path, stream: bytes) -> Submission:
    box = Streaming("x", BoxSpec(image=NO_IMAGE), no_reply, FakeRuntime().create)
    box.stream = stream
    return collect(box, task, some_supplies(task, folder))


def member(name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"", **more: object) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT) + data.ljust(-len(data) % 512 + len(data), b"\0")


ARCHIVES: dict[str, tuple[bytes, str]] = {
    "a way up": (member("src/../../x"), "leads elsewhere"),
    "absolute": (member("/etc/passwd"), "leads elsewhere"),
    "nowhere": (member("src/./x"), "leads elsewhere"),
    "two slashes": (member("src//x"), "leads elsewhere"),
    "the same twice": (member("src/x") * 2, "comes twice"),
    "a file and a link of one name": (
        member("src/x") + member("src/x", tarfile.SYMTYPE, linkname="y"), "comes twice",
    ),
    "huge": (member("src/x", size=1 << 40), "more than"),
    "negative": (member("src/x").replace(b"00000000000\0", b"-0000000777\0", 1), "cannot be read"),
    "cut": (member("src/x", data=b"x" * 2000)[:1024], "cannot be read"),
    "no archive": (b"no archive" * 99, "cannot be read"),
    "sparse": (
        tarfile.TarInfo("src/x").tobuf()[:156] + b"S" + bytes(355), "cannot be read",
    ),
    "hard links that multiply": (
        member("src/x", data=bytes(1 << 20))
        + b"".join(member(f"src/{i}", tarfile.LNKTYPE, linkname="src/x") for i in range(40)),
        "more than",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_stream_that_lies_is_rejected_and_no_fault(tmp_path: Path, name: str):
    stream, says = ARCHIVES[name]
    made = streamed(a_task(tmp_path), tmp_path / "s", stream + bytes(1024))
    assert made.patch == b""
    assert says in made.rejected


@pytest.mark.parametrize(
    "kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, b"Z"]
)
def test_what_is_neither_file_nor_link_is_left_out(tmp_path: Path, kind: bytes):
    stream = member("src/a.py", data=MENDED.data) + member("src/odd", kind) + bytes(1024)
    made = streamed(a_task(tmp_path), tmp_path / "s", stream)
    assert made.rejected == ""
    assert b"b/src/a.py" in made.patch
    assert kind in (tarfile.CONTTYPE, b"Z") or b"odd" not in made.patch


def test_a_hard_link_to_something_else_is_left_out(tmp_path: Path):
    stream = member("src/a.py", data=MENDED.data)
    stream += member("src/l", tarfile.LNKTYPE, linkname="/etc/passwd") + bytes(1024)
    assert b"src/l" not in streamed(a_task(tmp_path), tmp_path / "s", stream).patch


def test_what_is_collected_from_a_crowd_of_files_can_be_applied(tmp_path: Path):
    task, supplies = a_task(tmp_path), some_supplies(a_task(tmp_path), tmp_path / "s")
    crowd = (Entry(f"src/d{i % 99}/{i}", "file", b"") for i in range(3000))
    made = collect(a_box(task, *crowd), task, supplies)
    found = applied(task, supplies.base, made.patch)
    assert (found.refused, len(found.files)) == ("", 3000)


def test_all_of_the_working_directory_is_taken_but_its_git(tmp_path: Path):
    task = a_task(tmp_path)
    task = replace(task, submission=SubmissionSpec(paths=(".",)))
    files = ("src/a.py", "new/b.txt", ".git/config", "c.pyc", ".gitignore")
    box = a_box(task, *(Entry(name, "file", b"x\n") for name in files))
    made = collect(box, task, some_supplies(task, tmp_path / "s"))
    found = applied(task, some_supplies(task, tmp_path / "t").base, made.patch)
    assert made.rejected == ""
    assert [e.path for e in found.files] == [".gitignore", "new/b.txt", "src/a.py"]


@pytest.mark.parametrize("link", ["/work", "/work/toy", "/work/toy/src"])
def test_behind_a_link_above_what_is_declared_all_is_as_it_was_pinned(tmp_path: Path, link: str):
    """It may lead to the kernel's own files, which cannot all be read: that were a fault, and void."""
    task = a_task(tmp_path, submission=SubmissionSpec(paths=("src/a.py",)))
    box = a_box(task, Entry("src/a.py", "file", b"a = 1\n"))
    box.files[link] = Entry(link, "link", b"/moved")
    made = collect(box, task, some_supplies(task, tmp_path / "s"))
    assert (made.patch, made.dropped, made.rejected) == (b"", (link,), "")


def test_a_link_in_place_of_a_whole_working_directory_changes_nothing(tmp_path: Path):
    task = a_task(tmp_path, submission=SubmissionSpec(paths=(".",)))
    box = a_box(task)
    box.files[task.workdir] = Entry(task.workdir, "link", b"/moved")
    made = collect(box, task, some_supplies(task, tmp_path / "s"))
    assert (made.patch, made.dropped, made.rejected) == (b"", (task.workdir,), "")
