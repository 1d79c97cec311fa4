"""What a thing is depends on its content, and on nothing else."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import SpecError
from sandbox.formats.digest import Entry, canonical, digest_of, folder_entries, tree_digest

names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)
entries = st.lists(
    st.builds(Entry, names, st.sampled_from(["file", "exec", "link"]), st.binary(max_size=20)),
    unique_by=lambda e: e.path,
    max_size=6,
)
plain_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)  # fmt: skip


@given(entries, st.randoms(use_true_random=False))
def test_a_tree_s_digest_does_not_depend_on_order(found, random):
    mixed = list(found)
    random.shuffle(mixed)
    assert tree_digest(mixed) == tree_digest(found)


@given(entries, st.binary(max_size=5))
def test_bytecode_caches_do_not_count(found, data):
    cache = [Entry("__pycache__/a.pyc", "file", data), Entry("b/__pycache__/c", "file", data)]
    assert tree_digest([*found, *cache]) == tree_digest(found)


@given(entries, names, st.binary(max_size=5))
def test_another_file_another_kind_or_another_byte_is_another_tree(found, name, data):
    others = [e for e in found if e.path != name]
    seen = {
        tree_digest(others),
        tree_digest([*others, Entry(name, "file", data)]),
        tree_digest([*others, Entry(name, "exec", data)]),
        tree_digest([*others, Entry(name, "link", data)]),
        tree_digest([*others, Entry(name, "file", data + b"x")]),
        tree_digest([*others, Entry(name + "x", "file", data)]),
    }
    assert len(seen) == 6 or name == "__pycache__"


def test_moving_a_byte_between_name_and_content_is_another_tree():
    assert tree_digest([Entry("ab", "file", b"c")]) != tree_digest([Entry("a", "file", b"bc")])


@given(plain_data)
def test_canonical_json_is_json_and_says_the_same(data):
    again = json.loads(canonical(data))
    assert again == data
    assert canonical(again) == canonical(data)
    assert digest_of(again) == digest_of(data)


@given(st.dictionaries(st.text(max_size=5), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_matter(data):
    assert canonical(dict(reversed(data.items()))) == canonical(data)


def test_a_digest_is_sha256_and_64_digits():
    assert digest_of([]) == (
        "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    )


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_number_has_no_digest(bad):
    with pytest.raises(ValueError, match="JSON"):
        digest_of(bad)


def test_a_folder_s_files_links_and_modes_are_its_entries(tmp_path: Path):
    (tmp_path / "b").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "b" / "run").write_bytes(b"#!")
    (tmp_path / "b" / "run").chmod(0o755)
    (tmp_path / "b" / "__pycache__").mkdir()
    (tmp_path / "b" / "__pycache__" / "x.pyc").write_bytes(b"x")
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "to-a").symlink_to("a")
    (tmp_path / "to-b").symlink_to("b")
    (tmp_path / "dangling").symlink_to("/no/such")
    assert sorted(folder_entries(tmp_path)) == [
        Entry("a", "file", b"a"),
        Entry("b/run", "exec", b"#!"),
        Entry("dangling", "link", b"/no/such"),
        Entry("to-a", "link", b"a"),
        Entry("to-b", "link", b"b"),
    ]


def test_a_folder_below_one_called_pycache_is_read_all_the_same(tmp_path: Path):
    home = tmp_path / "__pycache__" / "home"
    home.mkdir(parents=True)
    (home / "a").write_bytes(b"a")
    assert list(folder_entries(home)) == [Entry("a", "file", b"a")]


def test_names_that_are_not_utf8_have_a_digest_too(tmp_path: Path):
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"")
    first = tree_digest(folder_entries(tmp_path))
    (tmp_path / os.fsdecode(b"\xff")).rename(tmp_path / os.fsdecode(b"\xfe"))
    assert tree_digest(folder_entries(tmp_path)) != first


def test_a_pipe_is_neither_file_nor_link(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecError, match="neither a file nor a link"):
        list(folder_entries(tmp_path))


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_folder_s_digest_does_not_depend_on_umask_times_or_owners(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        (tmp_path / "a").write_bytes(b"a")
        os.utime(tmp_path / "a", (umask, umask))
    finally:
        os.umask(before)
    assert tree_digest(folder_entries(tmp_path)) == tree_digest([Entry("a", "file", b"a")])
