"""Submissions that lie outside of the working directory: which places, what of them, and how told."""

import re
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.formats.digest import Entry
from sandbox.formats.patch import parse
from sandbox.formats.patchlines import PatchError
from sandbox.formats.patchparts import parts
from sandbox.formats.patchwrite import make_patch
from sandbox.formats.placerules import submitted_rules
from sandbox.grading.apply import Applied, applied, lay_out
from sandbox.grading.collect import collect
from sandbox.grading.plan import Job, restored
from sandbox.grading.setting import setting
from sandbox.model.conditions import USUAL
from sandbox.model.record import Submission
from sandbox.model.rooted import NEVER, never
from sandbox.model.task import SubmissionSpec, TaskSpec
from sandbox.runtime.base import ExecResult
from sandbox.runtime.docker.config import ENGINE_FILES
from sandbox.runtime.docker.still import TARGETS
from sandbox.runtime.fake import NO_IMAGE, Call, FakeBox, FakeRuntime, said
from sandbox.runtime.freeze.hold import STILL
from sandbox.runtime.freeze.preload import LIBRARY
from sandbox.runtime.network.attach import BUNDLE, FOLDER, WIRE
from sandbox.runtime.network.index.clients import APT_CONFIG, APT_SOURCES
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.supplies import Supplies
from tests.support.homes import a_task, some_supplies
from tests.support.hostilepatches import moved

PATHS = ("src", "/srv/out", "/etc/app.conf", "/etc/profile.d/app.sh", "/srv/lib/fast.so")
SOURCE = Entry("src/a.py", "file", b"a = 1\n")
IMAGE = (
    Entry("/etc/app.conf", "file", b"port = 1\n"),
    Entry("/srv/out/current", "link", b"/srv/out/old"),
    Entry("/srv/out/old", "exec", b"#!/bin/sh\n"),
    Entry("/srv/out/cache/a.pyc", "file", b"1"),
)
ANSWER = Entry("/srv/out/answer", "file", b"42\n")
CONFIG = replace(IMAGE[0], data=b"port = 2\n")
BASE = (SOURCE, *IMAGE)

FIT = (
    "/srv", "/srv/out", "/answer.txt", "/etc/nginx/nginx.conf", "/etc/app.conf", "/etc/ldap",
    "/etc/profile.d/x.sh", "/home/me/.bashrc", "/opt/tool", "/var/www/html", "/var/lib/app",
    "/verify2/x", "/work/toys", "/srv/node_modules",
)  # fmt: skip
UNFIT = (
    "/", "//srv", "/srv/", "/srv/../etc", "/srv/./x", "/srv//x", "/srv/\0", "/srv/.git", "/srv/.GIT/x",
    "/" + "d/" * 70 + "x", "/s\\..\\x", "/proc", "/proc/sys/kernel", "/sys", "/dev/shm", "/run/app",
    "/var", "/var/run/x", "/tmp/x", "/var/tmp", "/etc", "/etc/ld.so.preload", "/etc/ld.so.conf.d/x.conf",
    "/etc/ld-musl-x86_64.path", "/ETC/LD.SO.PRELOAD", "/etc/python3.11", "/etc/perl/sitecustomize.pl",
    "/etc/passwd", "/etc/nsswitch.conf", "/etc/ssl/openssl.cnf", "/etc/hosts", "/etc/alternatives/awk",
    "/usr/bin/python3", "/usr", "/usr/local/bin/x", "/usr/lib/python3.11/site-packages", "/bin/sh",
    "/lib64", "/lib/x86_64-linux-gnu/libc.so.6", "/verify", "/verify/supervise.py", "/.stillroom/still",
    "/root/.bashrc", "/work", "/work/toy", "/work/toy/src", "/srv/conftest.py", "/srv/app/pytest.ini",
    "/opt/own/lib", "/go.work", "/work/node_modules", "/work/Package.json",
)  # fmt: skip


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return a_task(tmp_path, submission=SubmissionSpec(paths=PATHS))


@pytest.fixture
def supplies(task: TaskSpec, tmp_path: Path) -> Supplies:
    return replace(some_supplies(task, tmp_path / "supplies"), base=BASE)


@pytest.mark.parametrize("path", FIT)
def test_a_place_that_is_the_task_s_own_may_be_declared(path: str):
    assert list(submitted_rules([path], "/work/toy", {"PATH": "/opt/own/bin:/bin"})) == []


@pytest.mark.parametrize("path", UNFIT)
def test_what_a_verdict_is_made_with_may_not_be_declared(path: str):
    (found,) = submitted_rules(["src", path], "/work/toy", {"PATH": "/opt/own/bin:/bin"})
    assert (found[0], path in found[1]) == ((1,), True)


@given(
    st.lists(st.sampled_from(["etc", "usr", "var", "srv", "ld.so.conf", "bin", "x"]), min_size=1)
)
def test_what_is_above_such_a_place_or_below_one_is_too(parts: list[str]):
    path = "/" + "/".join(parts)
    if never(path):
        assert all(never(str(above)) for above in PurePosixPath(path).parents)
    if parts[0] in ("bin", "usr"):
        assert never(path)


OURS = (
    *ENGINE_FILES, *TARGETS, "/verify", "/verify/services", "/tmp/services", "/usr/bin/python3",
    LIBRARY, "/etc/ld.so.preload", "/etc/faketimerc", STILL, FOLDER, WIRE, BUNDLE, APT_CONFIG, APT_SOURCES,
)  # fmt: skip


@pytest.mark.parametrize("path", sorted(set(OURS)))
def test_what_we_and_the_runtimes_put_into_a_box_is_such_a_place(path: str):
    assert never(path)


def test_the_page_names_every_such_place():
    page = (Path(__file__).parents[2] / "docs/reference/patches.md").read_text()
    named = set(re.findall(r"`([^`\n]+)`", page.replace("```", "")))
    names = {re.sub("^/(etc|var)/", "", pattern) for pattern in NEVER}
    assert {name for name in names if name not in named} == set()


def test_such_names_are_told_by_a_second_slash_and_no_other_name_is(task: TaskSpec):
    patch = make_patch(BASE, [SOURCE, CONFIG, *IMAGE[1:], ANSWER])
    assert b"diff --git a//etc/app.conf b//etc/app.conf\n" in patch
    assert b"+++ b//srv/out/answer\n" in patch
    made = applied(task, BASE, patch)
    assert (made.refused, made.outside) == ("", ())
    assert made.files == (CONFIG, ANSWER)


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=9)


@given(names, st.binary(max_size=50), st.booleans())
def test_what_is_written_is_read_again(name: str, data: bytes, executable: bool):  # noqa: FBT001
    new = Entry(f"/srv/out/{name}", "exec" if executable else "file", data)
    try:
        (change,) = parse(make_patch([], [new]), max_bytes=1 << 20, rooted=True)
    except PatchError as e:
        assert "git's own" in str(e) or "leads elsewhere" in str(e)  # noqa: PT017
    else:
        assert (change.verb, change.new) == ("create", new.path)


def test_a_patch_is_told_apart_into_what_is_within_and_what_is_without(task: TaskSpec):
    patch = make_patch(BASE, [replace(SOURCE, data=b"a = 2"), CONFIG, ANSWER, *IMAGE[1:]])
    inner, rooted = parts(b"Subject: words\n\n" + patch)
    assert applied(task, BASE, inner).files == (replace(SOURCE, data=b"a = 2"),)
    assert applied(task, BASE, rooted).files == (CONFIG, ANSWER)
    assert rooted + inner == patch
    assert (parts(inner), parts(b"no patch")) == ((inner, b""), (b"no patch", b""))


def test_a_task_without_such_places_takes_no_such_names(tmp_path: Path):
    task = a_task(tmp_path)
    made = applied(task, [SOURCE], make_patch([], [ANSWER]))
    assert made.refused == "patch:1: the name '/srv/out/answer' is absolute"


REFUSED = {
    # name: (the patch, what is said)
    "three slashes": (b"--- /dev/null\n+++ b///srv/out/x\n@@ -0,0 +1 @@\n+x\n", "absolute"),
    "no prefix": (b"--- /dev/null\n+++ /srv/out/x\n@@ -0,0 +1 @@\n+x\n", "absolute"),
    "the root": (b"--- /dev/null\n+++ b//\n@@ -0,0 +1 @@\n+x\n", "is no name"),
    "a way up": (b"--- /dev/null\n+++ b//srv/out/../../etc/x\n@@ -0,0 +1 @@\n+x\n", "elsewhere"),
    "git's own": (b"--- /dev/null\n+++ b//srv/out/.git/x\n@@ -0,0 +1 @@\n+x\n", "git's own"),
    "a link": (make_patch([], [Entry("/srv/out/l", "link", b"old")]), "leads out"),
    "a link that leads elsewhere": (
        make_patch([IMAGE[1]], [replace(IMAGE[1], data=b"/verify")]), "leads out",
    ),
    "below a link of the image": (
        make_patch([], [Entry("/srv/out/current/x", "file", b"x")]), "a file and a folder",
    ),
    "in place of a link of the image, a folder": (
        make_patch([IMAGE[1]], [Entry("/srv/out/current/x", "file", b"x")]), "a file and a folder",
    ),
    "in place of a folder, a file": (
        make_patch([], [Entry("/srv/out/cache", "file", b"x")]), "a file and a folder",
    ),
    "other capitals": (make_patch([], [Entry("/srv/out/OLD", "file", b"x")]), "one name elsewhere"),
    "out of what is declared": (
        moved("rename", "/srv/out/old", "/usr/bin/old").encode(), "not declared",
    ),
    "out of the box into the working directory": (
        moved("copy", "/srv/out/old", "other").encode(), "not declared",
    ),
    "setuid": (
        b"diff --git a//srv/out/x b//srv/out/x\nnew file mode 104755\n", "no mode that a file",
    ),
    "a device": (b"diff --git a//srv/out/x b//srv/out/x\nnew file mode 060644\n", "a device"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_submission_may_be_is_refused_there_as_well(task: TaskSpec, name: str):
    patch, says = REFUSED[name]
    made = applied(task, BASE, patch)
    assert made.refused.startswith("patch:")
    assert says in made.refused
    assert (made.files, made.removed) == ((), ())


def test_a_file_may_go_between_the_box_and_the_working_directory(task: TaskSpec):
    patch = (
        b"diff --git a/src/a.py b//srv/out/a.py\nrename from src/a.py\nrename to /srv/out/a.py\n"
    )
    made = applied(task, BASE, patch)
    assert (made.files, made.removed) == ((replace(SOURCE, path="/srv/out/a.py"),), ("src/a.py",))


def test_the_same_name_in_both_is_two_files(tmp_path: Path):
    task = a_task(tmp_path, submission=SubmissionSpec(paths=("srv", "/srv")))
    both = [Entry("srv/x", "file", b"1"), Entry("/srv/x", "file", b"2")]
    assert applied(task, [], make_patch([], both)).files == tuple(sorted(both))


LEFT_OUT = (
    "/etc/ld.so.preload", "/etc/app.conf.d/x", "/etc/profile.d/other.sh", "/srv/other", "/verify/x",
    "/srv/out/.bashrc", "/srv/out/a/.GitConfig", "/srv/out/conftest.py", "/srv/out/x.pth",
    "/srv/out/lib.so", "/srv/out/sitecustomize.py", "/srv/out/__pycache__/x", "/srv/out/cache/b.pyc",
    "/src/a.py",
)  # fmt: skip


@pytest.mark.parametrize("path", LEFT_OUT)
def test_what_is_not_declared_or_reserved_is_left_out_and_the_rest_counts(
    task: TaskSpec, path: str
):
    made = applied(task, BASE, make_patch([], [ANSWER, Entry(path, "file", b"x")]))
    assert (made.refused, made.outside, made.files) == ("", (path,), (ANSWER,))


@pytest.mark.parametrize("path", PATHS[3:])
def test_a_start_file_or_a_library_is_taken_where_it_is_declared_itself(task: TaskSpec, path: str):
    new = Entry(path, "file", b"x")
    assert applied(task, BASE, make_patch([], [new])).files == (new,)


def a_box(task: TaskSpec, *entries: Entry, without: tuple[str, ...] = ()) -> FakeBox:
    box = FakeRuntime().create(BoxSpec(image=NO_IMAGE, workdir=task.workdir))
    for e in (*BASE, *entries):
        if e.path not in without:
            path = e.path if e.path.startswith("/") else f"{task.workdir}/{e.path}"
            box.files[path] = e
    return box


def test_what_is_as_the_image_has_it_is_no_submission(task: TaskSpec, supplies: Supplies):
    assert collect(a_box(task), task, supplies) == Submission(task=task.id, patch=b"")


COLLECTED: dict[str, tuple[tuple[Entry, ...], tuple[str, ...]]] = {
    # name: (what is there, what is named as left out)
    "what is not declared": ((Entry("/srv/other", "file", b"x"),), ()),
    "a link": ((Entry("/srv/out/l", "link", b"old"),), ("/srv/out/l",)),
    "a link to the tests": ((Entry("/srv/out/l", "link", b"/verify"),), ("/srv/out/l",)),
    "a link of the image that leads elsewhere": (
        (replace(IMAGE[1], data=b"/etc/shadow"),), ("/srv/out/current",),
    ),
    "a link that is what is declared": (
        (Entry("/etc/profile.d/app.sh", "link", b"/etc/shadow"),), ("/etc/profile.d/app.sh",),
    ),
    "a folder in a file's place": (
        (Entry("/srv/out/old/x", "file", b"x"),), ("/srv/out/old/x",),
    ),
    "capitals": ((Entry("/srv/out/OLD", "file", b"x"),), ("/srv/out/OLD",)),
    "a repository": ((Entry("/srv/out/.git/config", "file", b"x"),), ("/srv/out/.git",)),
    "a start file": ((Entry("/srv/out/.profile", "file", b"x"),), ("/srv/out/.profile",)),
    "compiled code": ((Entry("/srv/out/x.so", "file", b"x"),), ("/srv/out/x.so",)),
    "a conftest": ((Entry("/srv/out/conftest.py", "file", b"x"),), ("/srv/out/conftest.py",)),
}  # fmt: skip


@pytest.mark.parametrize("name", COLLECTED)
def test_an_agent_s_box_is_read_as_strictly(task: TaskSpec, supplies: Supplies, name: str):
    there, named = COLLECTED[name]
    replaced = ("/srv/out/old",) if "file's place" in name else ()
    made = collect(a_box(task, ANSWER, CONFIG, *there, without=replaced), task, supplies)
    assert (made.rejected, made.dropped) == ("", named)
    found = applied(task, BASE, made.patch)
    assert (found.refused, found.outside, found.files) == ("", (), (CONFIG, ANSWER))
    assert found.removed == replaced


def test_behind_a_link_of_the_agent_s_all_is_as_the_image_has_it(
    task: TaskSpec, supplies: Supplies
):
    there = [Entry("/srv", "link", b"/proc"), Entry("/moved/out/answer", "file", b"42\n"), CONFIG]
    box = a_box(task, *there, without=tuple(e.path for e in IMAGE[1:]))
    made = collect(box, task, supplies)
    assert made.dropped == ("/srv",)
    found = applied(task, BASE, made.patch)
    assert (found.files, found.removed) == ((CONFIG,), ())


def test_a_file_at_the_root_keeps_its_name(tmp_path: Path):
    task = a_task(tmp_path, submission=SubmissionSpec(paths=("/answer",)))
    supplies = replace(some_supplies(task, tmp_path / "s"), base=())
    made = collect(a_box(task, Entry("/answer", "exec", b"x")), task, supplies)
    assert applied(task, (), made.patch).files == (Entry("/answer", "exec", b"x"),)


def test_all_the_places_together_have_one_limit(task: TaskSpec, supplies: Supplies):
    half = bytes((task.limits.submission_mib << 19) + 1)
    big = [Entry(f"/srv/out/{n}", "file", half) for n in "ab"]
    assert "16 MiB" in collect(a_box(task, *big), task, supplies).rejected


def laid_out(task: TaskSpec, made: Applied, *there: Entry) -> FakeBox:
    def reply(box: FakeBox, call: Call) -> ExecResult | None:
        return said() if call.argv[0] == "rmdir" else None

    box = FakeRuntime(reply).create(BoxSpec(image=NO_IMAGE, workdir=task.workdir))
    for e in there:
        box.files[e.path if e.path.startswith("/") else f"{task.workdir}/{e.path}"] = e
    lay_out(box, task, made, seconds=0)
    return box


def test_it_is_laid_out_where_it_was(task: TaskSpec):
    after = [replace(SOURCE, data=b"a = 2\n"), CONFIG, ANSWER, IMAGE[1]]
    box = laid_out(task, applied(task, BASE, make_patch(BASE, after)), *BASE)
    assert {path: e.data for path, e in box.files.items()} == {
        "/work/toy/src/a.py": b"a = 2\n",
        "/etc/app.conf": CONFIG.data,
        "/srv/out/answer": ANSWER.data,
        "/srv/out/current": IMAGE[1].data,
        "/srv/out/cache/a.pyc": b"1",  # compiled: as it was pinned
    }


def test_a_folder_that_becomes_empty_stays_and_one_in_a_file_s_place_goes(task: TaskSpec):
    patch = make_patch([IMAGE[2]], [ANSWER])
    calls = [c.argv for c in laid_out(task, applied(task, BASE, patch), *BASE).calls]
    assert calls == [("rm", "-rf", "--", "/srv/out/old", "/srv/out/answer")]


def test_support_of_tests_is_put_back_in_the_working_directory_only(
    task: TaskSpec, supplies: Supplies
):
    inner = Entry("src/conftest.py", "file", b"")
    given = replace(supplies, base=(*BASE, inner))
    plan = setting(task, given, USUAL)
    job = Job(task=task, plan=plan, made=Applied(), tests=(), runner="run_shell")
    assert list(restored(job, given)) == [inner]


@pytest.mark.parametrize(("kind", "back"), [("file", False), ("exec", False), ("link", True)])
def test_support_is_not_put_back_below_what_is_a_file_now(
    task: TaskSpec, supplies: Supplies, kind: Literal["file", "exec", "link"], *, back: bool
):
    """It could not be: that would be a fault, and a way to a void verdict."""
    given = replace(supplies, base=(*BASE, Entry("src/deep/conftest.py", "file", b"")))
    made = Applied(files=(Entry("src/deep", kind, b"x"),))
    job = Job(task=task, plan=setting(task, given, USUAL), made=made, tests=(), runner="run_shell")
    assert bool(list(restored(job, given))) == back
