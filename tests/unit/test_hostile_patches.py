"""Patches that are refused, each by name; and those that are taken, or in part."""

import re

import pytest

from sandbox.formats.digest import Entry
from sandbox.grading.apply import applied
from sandbox.model.task import TaskSpec
from tests.support.homes import a_task
from tests.support.hostilepatches import BASE, HEAD, HUNK, MEND, deleted, hostile, hunk, moved, new

HOSTILE = tuple(hostile())


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> TaskSpec:
    return a_task(tmp_path_factory.mktemp("home"))


def test_there_are_enough_of_them():
    assert len({name for name, *_ in HOSTILE}) == len(HOSTILE) > 90


@pytest.mark.parametrize(("patch", "says"), [h[1:] for h in HOSTILE], ids=[h[0] for h in HOSTILE])
def test_it_is_refused_by_name_and_changes_nothing(task: TaskSpec, patch: bytes, says: str):
    found = applied(task, BASE, patch)
    assert found.refused.startswith("patch:")
    assert re.search(says, found.refused), found.refused
    assert (found.files, found.removed) == ((), ())


def after(task: TaskSpec, patch: str | bytes) -> dict[str, Entry]:
    """The files as the patch leaves them, by name."""
    made = applied(task, BASE, patch.encode() if isinstance(patch, str) else patch)
    assert made.refused == ""
    tree = {e.path: e for e in BASE if e.path not in made.removed}
    return tree | {e.path: e for e in made.files}


MENDED = b"a = 2\nb = 2\nc = 3\n"
TAKEN = {
    "a commit message before it": "From 1234 Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\n a | 2 +-\n\n" + MEND,
    "a signature behind it": MEND + "-- \n2.39.5\n\n",
    "plain": hunk(HUNK),
    "plain, with times": hunk(HUNK).replace("a.py\n", "a.py\t2024-01-01 00:00:00 +0000\n", 2),
    "a section's name": hunk(HUNK.replace("3 @@", "3 @@ def f():")),
    "another prefix": HEAD.replace(" a/", " i/").replace(" b/", " w/") + hunk(HUNK),
    "the wrong place": hunk(HUNK.replace("-1,3 +1,3", "-2,3 +2,3")),
    "an index line that was made up": HEAD + "index xxxxxxx..yyyyyyy 100644\n" + hunk(HUNK),
    "a section's name at once": hunk(HUNK.replace("3 @@", "3 @@def f():")),
    "an empty line": MEND + "\n\nsome words\n",
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_git_takes_is_taken(task: TaskSpec, name: str):
    assert after(task, TAKEN[name])["src/a.py"].data == MENDED


def test_an_empty_patch_changes_nothing(task: TaskSpec):
    for patch in (b"", b"\n", b" \n\t\n"):
        assert applied(task, BASE, patch).refused == ""


def test_files_are_made_moved_copied_and_deleted(task: TaskSpec):
    patch = (
        new("src/n.py", "n", "100755")
        + moved("rename", "src/a.py", "src/pkg/a.py")
        + moved("copy", "src/run", "src/walk")
        + deleted("src/pkg/b.py", "b = 1")
        + "diff --git a/src/again.py b/src/again.py\nold mode 100644\nnew mode 100755\n"
        + new("src/l", "../src/pkg", "120000")
    )
    found = after(task, patch)
    assert found["src/n.py"] == Entry("src/n.py", "exec", b"n")
    assert found["src/pkg/a.py"].data == BASE[0].data
    assert found["src/walk"].kind == found["src/again.py"].kind == "exec"
    assert found["src/l"] == Entry("src/l", "link", b"../src/pkg")
    assert not {"src/a.py", "src/pkg/b.py"} & found.keys()


def test_a_link_can_take_a_file_s_place_in_two_steps(task: TaskSpec):
    patch = deleted("src/pkg/b.py", "b = 1") + new("src/pkg/b.py", "../a.py", "120000")
    assert after(task, patch)["src/pkg/b.py"] == Entry("src/pkg/b.py", "link", b"../a.py")
    assert applied(task, BASE, patch.encode()).replaced == ("src/pkg/b.py",)


def test_a_name_may_change_in_its_capitals(task: TaskSpec):
    assert "src/A.py" in after(task, moved("rename", "src/a.py", "src/A.py"))


RESERVED = [
    "src/sub/conftest.py", "src/pytest.ini", "src/tox.ini", "src/setup.cfg", "src/.pytest.ini",
    "src/sitecustomize.py", "src/usercustomize.py", "src/x.pth", "src/pkg/b.pyc", "src/b.pyo",
    "src/__pycache__/x.py", "src/pkg/_b.so", "src/b.pyd", "src/.gitattributes", "src/.gitmodules",
    "src/pytest.toml", "src/Conftest.py", "src/b.cpython-311-x86_64-linux-gnu.so",
]  # fmt: skip


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_files_are_left_out_and_named(task: TaskSpec, name: str):
    found = applied(task, BASE, (new(name) + MEND).encode())
    assert (found.refused, [e.path for e in found.files]) == ("", ["src/a.py"])
    assert found.outside in {(name,), ()}
    assert found.outside or not task.submission.covers(name)


def test_reserved_files_that_are_pinned_may_change_unless_they_configure(task: TaskSpec):
    patch = (
        "--- a/src/fast.so\n+++ b/src/fast.so\n@@ -1 +1 @@\n-\udc7fELF\n+new\n".replace(
            "\udc7f", "\x7f"
        )
        + deleted("src/conftest.py", "pinned = True")
        + new("src/.gitignore", "*.log")
    )
    found = applied(task, BASE, patch.encode())
    assert [e.path for e in found.files] == ["src/.gitignore", "src/fast.so"]
    assert (found.removed, found.outside) == ((), ("src/conftest.py",))


def test_undeclared_files_are_left_out_and_named_however_many(task: TaskSpec):
    many = "".join(new(f"tests/t{i}") for i in range(1500))
    found = applied(task, BASE, (many + MEND + moved("rename", "docs/a", "docs/b")).encode())
    assert [e.data for e in found.files] == [MENDED]
    assert len(found.outside) == 1001
    assert found.outside[-1] == "(and 502 more)"


def test_what_a_left_out_file_would_hold_is_never_looked_at(task: TaskSpec):
    patch = f"--- a/tests/t\n+++ b/tests/t\n{HUNK}"
    assert applied(task, BASE, patch.encode()).outside == ("tests/t",)


def test_hunks_that_are_not_where_they_say_are_looked_for_only_so_long(task: TaskSpec):
    lines = [b"%08d" % n for n in range(500_000)]
    base = [Entry("src/big", "file", b"\n".join((*lines, b"")))]
    hunks = "".join(
        f"@@ -{n + 9},3 +{n + 9},3 @@\n {n:08}\n-{n + 1:08}\n+x\n {n + 2:08}\n"
        for n in range(100, 10_100, 100)
    )
    found = applied(task, base, hunk(hunks, name="src/big").encode())
    assert found.refused.endswith("too many hunks are not where they say")
