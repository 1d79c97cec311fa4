"""A patch made from contents turns one tree into the other: by our own reader, and by git's."""

import os
import random
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sandbox.formats.digest import Entry, folder_entries
from sandbox.formats.patch import parse
from sandbox.formats.patchapply import outcome
from sandbox.formats.patchlines import PatchError
from sandbox.formats.patchnames import clashing, leads_out, quoted, swapped, unquoted, unsafe
from sandbox.formats.patchwrite import edits, hunks, make_patch
from sandbox.runtime.store import remove_tree
from tests.support.gits import commit, git
from tests.support.hostilepatches import MEND, hostile

NAMES = [
    "a", "b.py", "dir/a", "dir/deep/b", "with space", 'quo"te', "new\nline", "tab\t", "ä", "-dash",
    os.fsdecode(b"\xff\xfe"), "back\\slash", "*?[x]", "trailing ", "dir/.gitignore", "'",
]  # fmt: skip
contents = st.one_of(
    st.sampled_from([b"", b"a\n", b"a\nb\nc\n", b"no newline", b"dos\r\nlines\r\n", b"\r", bytes(9),
                     b"a\n" * 50, b"a\n" * 49 + b"b\n", b"\xff\xfe", b" trailing \n\t\n",
                     b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n", b"diff --git a/x b/x\n", b"*.py\n"]),
    st.binary(max_size=40),
)  # fmt: skip
targets = st.sampled_from([b"a", b"../up", b"/etc/passwd", b"\xff", b"none such"])
things = st.one_of(
    st.tuples(st.sampled_from(["file", "exec"]), contents), st.tuples(st.just("link"), targets)
)
trees = st.dictionaries(st.sampled_from(NAMES), things, max_size=12)


def entries(tree: dict[str, tuple[Any, bytes]]) -> list[Entry]:
    return [Entry(name, kind, data) for name, (kind, data) in sorted(tree.items())]


def write(folder: Path, found: list[Entry]) -> None:
    for e in found:
        path = folder / e.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if e.kind == "link":
            path.symlink_to(os.fsdecode(e.data))
        else:
            path.write_bytes(e.data)
            path.chmod(0o755 if e.kind == "exec" else 0o644)


def there(folder: Path) -> list[Entry]:
    return sorted(e for e in folder_entries(folder) if not e.path.startswith(".git/"))


LIMIT = 1 << 24


def worktree(folder: Path, before: list[Entry]) -> None:
    remove_tree(folder)
    folder.mkdir()
    git(folder, "init", "--quiet")
    write(folder, before)
    commit(folder)


def by_us(before: list[Entry], patch: bytes) -> list[Entry]:
    base = {e.path: e for e in before}
    made = outcome(parse(patch, max_bytes=LIMIT), base, max_bytes=LIMIT)
    tree = {path: e for path, e in base.items() if path not in made.removed}
    return sorted((tree | {e.path: e for e in made.files}).values())


def is_taken(before: list[Entry], after: list[Entry]) -> bool:
    """Is it a change that a submission may make?"""
    old, new = ({e.path: e for e in tree} for tree in (before, after))
    fresh = new.keys() - old.keys()
    links = (e for e in after if e.kind == "link" and old.get(e.path) != e)
    return not (
        swapped(fresh, old.keys())
        or clashing(fresh, new.keys() & old.keys())
        or any(leads_out(e.path, e.data) for e in links)
    )


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=trees, after=trees)
def test_git_turns_one_tree_into_the_other(tmp_path, before, after):
    worktree(tmp_path / "w", entries(before))
    patch = make_patch(entries(before), entries(after))
    assert (patch == b"") == (before == after)
    if patch:
        git(tmp_path / "w", "apply", "--whitespace=nowarn", "-", feed=patch)
    assert there(tmp_path / "w") == entries(after)


@settings(max_examples=300)
@given(before=trees, after=trees)
def test_our_reader_turns_one_tree_into_the_other(before, after):
    patch = make_patch(entries(before), entries(after))
    if is_taken(entries(before), entries(after)):
        assert by_us(entries(before), patch) == entries(after)
    else:
        with pytest.raises(PatchError):
            by_us(entries(before), patch)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=trees, after=trees, more=st.sampled_from([(), ("-M", "-C", "-C"), ("-U0",), ("-R",)]))
def test_our_reader_reads_what_git_writes(tmp_path, before, after, more):
    """But for what no submission may do, and hunks without the lines around them."""
    worktree(tmp_path / "w", entries(before))
    for path in (tmp_path / "w").iterdir():
        if path.name != ".git":
            remove_tree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    write(tmp_path / "w", entries(after))
    git(tmp_path / "w", "add", "--all", "--force")
    patch = git(tmp_path / "w", "diff", "--cached", "--binary", *more)
    old, new = entries(before), entries(after)
    if "-R" in more:
        old, new = new, old
    try:
        assert by_us(old, patch) == new
    except PatchError:
        assert not is_taken(old, new) or "-U0" in more


lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b"d\ne\n"]), max_size=30)


@settings(max_examples=200)
@given(before=lines, after=lines, ends=st.tuples(st.booleans(), st.booleans()))
def test_files_with_lines_that_are_alike_come_out_right(before, after, ends):
    old, new = (
        b"".join(parts) + (b"end" if cut else b"")
        for parts, cut in zip((before, after), ends, strict=True)
    )
    found = [Entry("a", "file", old)], [Entry("a", "file", new)]
    assert by_us(found[0], make_patch(*found)) == found[1]


@settings(max_examples=200)
@given(
    old=st.lists(st.sampled_from(b"abcdef"), max_size=30),
    new=st.lists(st.sampled_from(b"abcdef"), max_size=30),
)
def test_what_lies_between_two_edits_is_the_same(old, new):
    a, b = ([b"%c" % c for c in line] for line in (old, new))
    i = k = 0
    for start, end, first, last in edits(a, b):
        assert a[i:start] == b[k:first]
        i, k = end, last
    assert a[i:] == b[k:]


def test_the_bytes_of_a_patch_are_always_these():
    """Records and certificates name a patch by its hash: the format is not ours to change."""
    old = [
        Entry("a b", "file", b"1\n2\n3\n4\n5\n6\n"),
        Entry("gone", "exec", b"x"),
        Entry("z", "file", b""),
    ]
    new = [
        Entry("a b", "file", b"1\n2\n3\n4\n5\nsix\n7"),
        Entry("bin", "file", b"\0\1"),
        Entry("z", "exec", b""),
    ]
    assert make_patch(old, new) == (
        b"diff --git a/gone b/gone\ndeleted file mode 100755\n--- a/gone\n+++ /dev/null\n"
        b"@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n"
        b"diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n"
        b"@@ -3,4 +3,5 @@\n 3\n 4\n 5\n-6\n+six\n+7\n\\ No newline at end of file\n"
        b"diff --git a/bin b/bin\nnew file mode 100644\n"
        b"index 0000000000000000000000000000000000000000..bdc955b7b2e610ad5a72302b139a2e6cb325519a\n"
        b"GIT binary patch\nliteral 2\nMcmV+d0R8^}0RRI40ssI2\n\n\n"
        b"diff --git a/z b/z\nold mode 100644\nnew mode 100755\n"
    )


@given(trees, trees, st.randoms(use_true_random=False))
def test_the_same_change_is_the_same_patch(before, after, chance):
    mixed = entries(before), entries(after)
    for tree in mixed:
        chance.shuffle(tree)
    assert make_patch(*mixed) == make_patch(entries(before), entries(after))


def test_small_changes_of_a_file_are_small_in_the_patch():
    old = b"".join(b"line %d\n" % n for n in range(1000))
    new = old.replace(b"line 300\n", b"").replace(b"line 700\n", b"line seven\nhundred\n")
    assert b"".join(hunks(old, new)).count(b"\n") == 2 + 6 + 1 + 6 + 3


def test_files_that_have_nothing_in_common_but_lines_come_out_right():
    def shuffled(seed: int) -> bytes:
        numbers = list(range(40_000))
        random.Random(seed).shuffle(numbers)
        return b"".join(b"%d\n" % n for n in numbers)

    old, new = [Entry("a", "file", shuffled(1))], [Entry("a", "file", shuffled(2))]
    assert by_us(old, make_patch(old, new)) == new


def test_a_file_can_become_a_folder_and_back_for_git(tmp_path: Path):
    one, other = [Entry("a", "file", b"x\n")], [Entry("a/b", "exec", b"x\n")]
    for before, after in ((one, other), (other, one)):
        worktree(tmp_path / "w", before)
        git(tmp_path / "w", "apply", "-", feed=make_patch(before, after))
        assert there(tmp_path / "w") == after


def test_files_outside_of_what_is_compared_are_left_alone(tmp_path: Path):
    kept, mine = Entry("other", "file", b"1\n"), Entry("src/a", "file", b"1\n")
    worktree(tmp_path / "w", [kept, mine])
    git(tmp_path / "w", "apply", "-", feed=make_patch([mine], []))
    assert there(tmp_path / "w") == [kept]


@pytest.mark.parametrize("size", [1, 51, 52, 53, 65_535, 65_536, 300_000])
def test_a_binary_file_survives(tmp_path: Path, size: int):
    before = [Entry("a", "file", bytes(size))]
    after = [Entry("a", "file", os.urandom(size) + b"\0")]
    worktree(tmp_path / "w", before)
    patch = make_patch(before, after)
    git(tmp_path / "w", "apply", "-", feed=patch)
    assert there(tmp_path / "w") == after == by_us(before, patch)


def test_git_s_deltas_are_read(tmp_path: Path):
    before = [Entry("a", "file", os.urandom(90_000))]
    data = before[0].data
    after = [Entry("a", "file", data[70_000:] + b"new" * 99 + data[:80_000])]
    worktree(tmp_path / "w", before)
    write(tmp_path / "w", after)
    patch = git(tmp_path / "w", "diff", "--binary")
    assert b"\ndelta " in patch
    assert by_us(before, patch) == after


def test_modes_other_than_executable_are_no_part_of_a_patch(tmp_path: Path):
    before, after = [Entry("a", "file", b"1\n")], [Entry("a", "exec", b"1\n")]
    worktree(tmp_path / "w", before)
    git(tmp_path / "w", "apply", "-", feed=make_patch(before, after))
    assert (tmp_path / "w" / "a").stat().st_mode & stat.S_IXUSR


@given(st.binary(min_size=1, max_size=20))
def test_a_quoted_name_is_read_again(name):
    said = quoted(name)
    assert (unquoted(said) if said.startswith(b'"') else (said, b"")) == (name, b"")


@given(st.text(max_size=20))
def test_any_name_is_safe_or_not(name):
    assert unsafe(name) or name.strip("/") == name != ""


PIECES = [
    b"diff --git a/x b/x\n", b"--- a/x\n", b"+++ b/x\n", b"--- /dev/null\n", b"+++ /dev/null\n",
    b"@@ -1 +1 @@\n", b"@@ -1,2 +1,2 @@\n", b"@@ -0,0 +1 @@\n", b"-x\n", b"+y\n", b" z\n", b"\n",
    b"\\ No newline at end of file\n", b"new file mode 100644\n", b"deleted file mode 100644\n",
    b"old mode 100644\n", b"new mode 120000\n", b"rename from x\n", b"rename to y\n",
    b"index 1234567..1234567 100644\n", b"index " + b"1" * 40 + b".." + b"2" * 40 + b"\n",
    b"GIT binary patch\n", b"literal 1\n", b"delta 9\n", b"Icmb2|00\n", b"copy from x\n",
    b"copy to z\n", b'--- "a/x\\303"\n', b"Binary files x and y differ\n", b"text\n", b"@@", b"\r\n",
]  # fmt: skip
BASE = [Entry("x", "file", b"x\nz\n"), Entry("dir/a", "link", b"x")]
garbage = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join),
    st.binary(max_size=300),
    st.builds(
        lambda patch, at, more: patch[:at] + more + patch[at:],
        st.sampled_from([patch[:4000] for _, patch, _ in hostile()]),
        st.integers(0, 400),
        st.one_of(st.binary(max_size=3), st.sampled_from(PIECES)),
    ),
)


@settings(max_examples=500)
@given(garbage)
@example(MEND.encode())
def test_whatever_is_no_patch_is_refused_and_nothing_else_happens(data):
    refused = None
    try:
        by_us(BASE, data)
    except PatchError as e:
        refused = e
    if refused:
        assert str(refused).startswith(f"patch:{refused.line}: ")
        assert 1 <= refused.line <= data.count(b"\n") + 2


@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_much_of_the_same_takes_no_time(piece: bytes):
    """Of what is quadratic, a mebibyte would take more than a test may."""
    head = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n"
    for start in (b"", head, head + b"@@ -1,90000 +1,90000 @@\n", b'--- "'):
        try:
            by_us(BASE, start + piece * ((1 << 20) // len(piece)))
        except PatchError:
            continue
