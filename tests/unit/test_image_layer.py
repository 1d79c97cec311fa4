"""A layer's bytes depend on its entries alone, and unpack to exactly them."""

import hashlib
import io
import os
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import ImageFault
from sandbox.runtime.image.entry import Entry, folder, symlink, with_parents
from sandbox.runtime.image.layer import write_layer
from sandbox.runtime.image.layout import inside
from sandbox.runtime.image.unpack import fingerprint, unpack

EPOCH = 1_640_995_200
names = st.text(
    st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=60
).filter(lambda n: n not in (".", "..") and len(n.encode()) <= 200)
files = st.builds(
    Entry,
    st.lists(names, min_size=1, max_size=3).map("/".join),
    st.just("file"),
    mode=st.integers(0o400, 0o1777).map(lambda m: m | 0o400),
    mtime=st.integers(0, 2 * EPOCH),
    data=st.binary(max_size=1500),
)


@st.composite
def trees(draw: st.DrawFn) -> list[Entry]:
    """Files under distinct top folders, so that no file is another one's folder."""
    found = draw(st.lists(files, max_size=6))
    placed = [
        Entry(f"{n}/{e.path}", "file", e.mode, e.mtime, data=e.data) for n, e in enumerate(found)
    ]
    return list(with_parents(placed).values())


SAMPLE = [
    folder("a"),
    Entry("a/b", "file", 0o755, 5, data=b"#!/bin/sh\n"),
    symlink("a/c", "b"),
    Entry("a/a", "hardlink", 0o755, 5, target="a/b"),
]


def test_the_format_is_pinned_down_to_the_byte(tmp_path):
    # A change here changes every image there is: all locks would have to be made again.
    assert (
        write_layer(SAMPLE, tmp_path / "layer.tar", EPOCH)
        == "sha256:ddd5fbf1ef895d8d80b75d0806ba061977edb04571ff7a6518c045771862ca39"
    )


def test_the_digest_is_that_of_the_written_file(tmp_path):
    diff_id = write_layer(SAMPLE, tmp_path / "layer.tar", EPOCH)
    written = (tmp_path / "layer.tar").read_bytes()
    assert diff_id == "sha256:" + hashlib.sha256(written).hexdigest()


@given(trees(), st.randoms())
def test_the_order_of_entries_does_not_matter(tmp_path_factory, entries, random):
    tmp = tmp_path_factory.getbasetemp()
    shuffled = random.sample(entries, len(entries))
    assert write_layer(entries, tmp / "1.tar", EPOCH) == write_layer(shuffled, tmp / "2.tar", EPOCH)


@given(trees())
def test_unpacking_gives_back_content_mode_and_time(tmp_path_factory, entries):
    tmp = tmp_path_factory.mktemp("layer")
    write_layer(entries, tmp / "layer.tar", EPOCH)
    unpack(tmp / "layer.tar", tmp / "out")
    for entry in (e for e in entries if e.kind == "file"):
        path = tmp / "out" / entry.path
        status = path.stat()
        assert path.read_bytes() == entry.data
        assert stat.S_IMODE(status.st_mode) == entry.mode
        assert status.st_mtime_ns == min(entry.mtime, EPOCH) * 10**9
    assert len(list((tmp / "out").rglob("*"))) == len(entries)


def test_links_are_unpacked_as_links(tmp_path):
    write_layer(SAMPLE, tmp_path / "layer.tar", EPOCH)
    unpack(tmp_path / "layer.tar", tmp_path / "out")
    out = tmp_path / "out" / "a"
    assert (out / "c").readlink() == Path("b")
    assert (out / "a").samefile(out / "b")
    assert out.stat().st_mtime == EPOCH


def test_long_names_need_no_pax_header(tmp_path):
    entry = Entry("x" * 150 + "ü", "file", data=b"1")
    write_layer([entry], tmp_path / "layer.tar", EPOCH)
    with tarfile.open(tmp_path / "layer.tar") as archive:
        assert archive.getnames() == [entry.path]
        assert archive.getmembers()[0].pax_headers == {}


def hostile(path: Path, *members: tuple[str, bytes, str]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, kind, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, target, 0o755
            archive.addfile(info, io.BytesIO())
    return path


@pytest.mark.parametrize(
    "members",
    [
        [("../outside", tarfile.REGTYPE, "")],
        [("/outside", tarfile.REGTYPE, "")],
        [("a/../../outside", tarfile.REGTYPE, "")],
        [("a", tarfile.DIRTYPE, ""), ("a/..", tarfile.DIRTYPE, "")],
        [("a", tarfile.SYMTYPE, "/"), ("a/outside", tarfile.REGTYPE, "")],
        [("a", tarfile.SYMTYPE, ".."), ("a/outside", tarfile.DIRTYPE, "")],
        [("a", tarfile.SYMTYPE, "outside"), ("a", tarfile.REGTYPE, "")],
        [("a", tarfile.LNKTYPE, "/etc/passwd")],
        [("a", tarfile.LNKTYPE, "../outside")],
        [("a", tarfile.SYMTYPE, "/etc/passwd"), ("b", tarfile.LNKTYPE, "a")],
        [("a", tarfile.CHRTYPE, "")],
        [("a", tarfile.BLKTYPE, "")],
        [("a", tarfile.FIFOTYPE, "")],
        [("a", tarfile.REGTYPE, ""), ("a", tarfile.REGTYPE, "")],
        [("no-parent/a", tarfile.REGTYPE, "")],
    ],
)
def test_what_would_leave_the_folder_is_refused(tmp_path, members):
    (tmp_path / "in").mkdir()
    path = hostile(tmp_path / "layer.tar", *members)
    with pytest.raises(ImageFault, match="cannot unpack"):
        unpack(path, tmp_path / "in" / "out")
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "in" / "outside").exists()


def test_a_cut_layer_is_refused(tmp_path):
    write_layer(SAMPLE, tmp_path / "layer.tar", EPOCH)
    whole = (tmp_path / "layer.tar").read_bytes()
    (tmp_path / "layer.tar").write_bytes(whole[: 2 * 512 + 5])
    with pytest.raises(ImageFault, match="cannot unpack"):
        unpack(tmp_path / "layer.tar", tmp_path / "out")


def test_a_folder_that_cannot_be_written_to_is_filled_all_the_same(tmp_path):
    entries = [folder("a", 0o555), Entry("a/b", "file", 0o400, data=b"1")]
    write_layer(entries, tmp_path / "layer.tar", EPOCH)
    unpack(tmp_path / "layer.tar", tmp_path / "out")
    assert (tmp_path / "out" / "a" / "b").read_bytes() == b"1"
    assert stat.S_IMODE((tmp_path / "out" / "a").stat().st_mode) == 0o555


def change_content_and_size(root):
    (root / "a/b").write_bytes(b"longer than it was")


def change_time(root):
    os.utime(root / "a/b", (9, 9))


def change_mode(root):
    (root / "a/b").chmod(0o700)


def change_link(root):
    (root / "a/c").unlink()
    (root / "a/c").symlink_to("elsewhere")


def add_file(root):
    (root / "new").touch()


def remove_file(root):
    (root / "a/a").unlink()


@pytest.mark.parametrize(
    "damage",
    [change_content_and_size, change_time, change_mode, change_link, add_file, remove_file],
)
def test_damage_shows_in_the_fingerprint(tmp_path, damage):
    write_layer(SAMPLE, tmp_path / "layer.tar", EPOCH)
    unpack(tmp_path / "layer.tar", tmp_path / "out")
    before = fingerprint(tmp_path / "out")
    assert fingerprint(tmp_path / "out") == before
    damage(tmp_path / "out")
    assert fingerprint(tmp_path / "out") != before


@given(st.text(max_size=30))
def test_a_path_inside_never_leads_outside(path):
    try:
        found = inside(path)
    except ImageFault:
        return
    assert not found.startswith("/")
    assert ".." not in found.split("/")
    assert inside(found) == found
