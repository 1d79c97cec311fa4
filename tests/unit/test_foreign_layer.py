"""A layer that others made is unpacked for an overlay, or refused: nothing gets past its folder."""

import io
import os
import stat
import tarfile
import threading
from pathlib import Path

import pytest

from sandbox.errors import ImageFault
from sandbox.model.task import Digest
from sandbox.runtime.image.foreignlayer import HEADER_BYTES, unpack_foreign
from sandbox.runtime.image.stored import keep_layer, unpacked
from sandbox.runtime.image.unpack import OPAQUE
from sandbox.runtime.store import Store, remove_tree
from tests.support.foreign import Member, digest, folder, hard_link, layer, symlink

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="owners and marks need root")
CAPABILITY = b"\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"


def unpack(tmp_path: Path, *members: Member) -> Path:
    return unpack_tar(tmp_path, layer(*members))


def unpack_tar(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / "layer.tar").write_bytes(content)
    unpack_foreign(tmp_path / "layer.tar", tmp_path / "out")
    return tmp_path / "out"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def is_whiteout(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(path: Path) -> bool:
    return any(mark in OPAQUE for mark in os.listxattr(path))


@needs_root
def test_owners_modes_and_times_are_kept(tmp_path):
    out = unpack(
        tmp_path,
        folder("home", 0o2750, uid=1000, gid=1001),
        Member(name="home/su", mode=0o4755, uid=7, gid=8, mtime=5),
        Member(name="home/exact", pax={"mtime": "1234567890.123456789"}),
        symlink("home/link", "/etc/passwd"),
    )
    found = (out / "home").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o2750, 1000, 1001)
    found = (out / "home/su").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o4755, 7, 8)
    assert found.st_mtime == 5
    assert (out / "home/exact").stat().st_mtime_ns == 1234567890123456789
    assert (out / "home/link").readlink() == Path("/etc/passwd")
    assert (out / "home/link").lstat().st_mtime == 1_600_000_000


@needs_root
@pytest.mark.parametrize("owner", ["65536", "197609", "99999999999999999999", "-1"])
def test_owners_that_a_box_cannot_have_are_nobody(tmp_path, owner):
    out = unpack(tmp_path, Member(name="far", pax={"uid": owner, "gid": owner}))
    found = (out / "far").stat()
    assert (found.st_uid, found.st_gid) == (65534, 65534)


@needs_root
def test_what_it_takes_away_becomes_marks_of_an_overlay(tmp_path):
    out = unpack(
        tmp_path,
        folder("etc"),
        Member(name="etc/.wh.gone"),
        Member(name="var/lib/.wh.deep"),
        folder("new"),
        Member(name="new/file"),
        Member(name="new/.wh..wh..opq"),
        Member(name=".wh.top"),
    )
    marks = ["etc/gone", "var/lib/deep", "top"]
    assert all(is_whiteout(out / name) for name in marks)
    assert is_opaque(out / "new")
    assert not any(is_opaque(out / name) for name in ("etc", "var", "var/lib"))
    assert not list(out.rglob(".wh.*"))


@needs_root
def test_what_is_both_hidden_and_there_is_there_and_replaces_what_is_below(tmp_path):
    out = unpack(
        tmp_path,
        Member(name=".wh.file"),
        Member(name="file", content=b"new"),
        folder("folder"),
        Member(name="folder/a"),
        Member(name=".wh.folder"),
        Member(name="folder/.wh.b"),
    )
    assert (out / "file").read_bytes() == b"new"
    assert is_opaque(out / "folder")
    assert names_in(out / "folder") == ["a"]  # what an opaque folder hides needs no mark


def test_an_old_engines_own_marks_are_left_out(tmp_path):
    out = unpack(tmp_path, Member(name=".wh..wh.aufs"), Member(name=".wh..wh.plnk/12.34"))
    assert names_in(out) == []


def test_folders_that_are_not_listed_are_made(tmp_path):
    out = unpack(tmp_path, Member(name="./a/b/c", content=b"x"))
    assert (out / "a/b/c").read_bytes() == b"x"
    assert stat.S_IMODE((out / "a/b").stat().st_mode) == 0o755


def test_absolute_names_are_taken_from_the_layers_root(tmp_path):
    out = unpack(
        tmp_path, folder("/etc/"), Member(name="//etc/./x", content=b"x"), hard_link("y", "/etc/x")
    )
    assert (out / "etc/x").read_bytes() == (out / "y").read_bytes() == b"x"


def test_names_that_are_not_utf8_are_kept(tmp_path):
    raw = [b"\xff\xfe", b"latin-\xe9", b"new\nline", b"long" * 60 + b"\xf0"]
    out = unpack(tmp_path, *(Member(name=os.fsdecode(name)) for name in raw))
    assert sorted(os.fsencode(name) for name in names_in(out)) == sorted(raw)


def test_hard_links_share_a_file(tmp_path):
    out = unpack(
        tmp_path,
        Member(name="a", content=b"x"),
        hard_link("b", "./a"),
        symlink("s", "nowhere"),
        hard_link("t", "s"),
    )
    assert (out / "a").stat().st_ino == (out / "b").stat().st_ino
    assert (out / "t").readlink() == Path("nowhere")


def test_of_two_files_of_one_name_the_later_counts(tmp_path):
    out = unpack(
        tmp_path,
        symlink("a", "/etc/passwd"),
        Member(name="a", content=b"2"),
        hard_link("b", "a"),
        Member(name="a", content=b"3"),
        folder("d", 0o700),
        folder("d", 0o711),
    )
    assert ((out / "a").read_bytes(), (out / "b").read_bytes()) == (b"3", b"2")
    assert stat.S_IMODE((out / "d").stat().st_mode) == 0o711


@needs_root
def test_capabilities_of_programs_are_kept_and_what_an_overlay_obeys_is_not(tmp_path):
    out = unpack(
        tmp_path,
        folder("d"),
        Member(
            name="d/ping",
            mode=0o755,
            pax={
                "SCHILY.xattr.security.capability": CAPABILITY.decode("utf-8", "surrogateescape"),
                "SCHILY.xattr.trusted.overlay.redirect": "/etc",
                "SCHILY.xattr.user.overlay.opaque": "y",
            },
        ),
    )
    assert os.listxattr(out / "d/ping") == ["security.capability"]
    assert os.getxattr(out / "d/ping", "security.capability") == CAPABILITY


def test_holes_stay_holes(tmp_path):
    size, data = 1 << 30, b"end\n"
    sparse = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "disk",
        "GNU.sparse.realsize": str(size),
    }
    where = f"1\n{size - len(data)}\n{len(data)}\n".encode()
    content = where + bytes(-len(where) % 512) + data
    out = unpack(tmp_path, Member(name="GNUSparseFile.0/disk", content=content, pax=sparse))
    found = (out / "disk").stat()
    assert found.st_size == size
    assert found.st_blocks * 512 < 1 << 20
    with (out / "disk").open("rb") as f:
        f.seek(-4, os.SEEK_END)
        assert f.read() == data


def test_an_empty_layer_is_an_empty_folder(tmp_path):
    assert names_in(unpack(tmp_path)) == []


def test_devices_below_dev_are_left_out_as_a_box_has_its_own(tmp_path):
    out = unpack(tmp_path, folder("dev"), Member(name="dev/null", kind=tarfile.CHRTYPE))
    assert names_in(out / "dev") == []


def test_a_named_pipe_is_one(tmp_path):
    out = unpack(tmp_path, Member(name="pipe", kind=tarfile.FIFOTYPE))
    assert stat.S_ISFIFO((out / "pipe").stat().st_mode)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([Member(name="../out-of-it")], "leads elsewhere"),
        ([Member(name="a/../../out-of-it")], "leads elsewhere"),
        ([Member(name="a"), hard_link("b", "../../etc/passwd")], "leads elsewhere"),
        ([hard_link("b", "/etc/passwd")], "is no file before it"),
        ([folder("a"), hard_link("b", "a")], "is no file before it"),
        ([Member(name="a"), hard_link("a", "a")], "is no file before it"),
        ([symlink("e", "/"), Member(name="e/x")], "'e' is no folder, yet something is to be in"),
        ([symlink("e", ".."), hard_link("b", "e/x")], "is no file before it"),
        ([symlink("e", "/tmp"), Member(name="e/.wh.x")], "'e' is no folder"),
        ([Member(name="sda", kind=tarfile.BLKTYPE)], "'sda' is a device"),
        ([Member(name="usr/mem", kind=tarfile.CHRTYPE)], "'usr/mem' is a device"),
        ([Member(name=".wh..wh..opq")], "hides all layers below"),
        ([Member(name="a/.wh...")], "hides no name"),
        ([Member(name="a/.wh.")], "hides no name"),
        ([Member(name=".wh.a/b")], "below a mark"),
        ([folder("a"), Member(name="a")], "a folder, and then something else"),
        ([Member(name="a" * 5000)], "longer than any path"),
        ([Member(name="a" * 300)], "too long"),
        ([Member(name="a", kind=b"Z")], "of a kind that is not known"),
        ([Member(name="a", pax={"mtime": "nan"})], ""),
        ([Member(name="a", pax={"mtime": "1e999999999999999999"})], ""),
    ],
)
def test_what_is_hostile_is_refused_by_name(tmp_path, members, why):
    with pytest.raises(ImageFault, match="refused: layer layer: ") as e:
        unpack(tmp_path, *members)
    assert why in str(e.value)
    assert not e.value.retry
    assert {p.name for p in tmp_path.iterdir()} <= {"layer.tar", "out"}


def test_a_device_that_an_overlay_would_take_for_a_mark_is_refused(tmp_path):
    with pytest.raises(ImageFault, match="'etc/passwd' is a device"):
        unpack(tmp_path, Member(name="etc/passwd", kind=tarfile.CHRTYPE))


@pytest.mark.parametrize("bounds", [{"most_bytes": 10_000}, {"most_entries": 5}])
def test_a_layer_that_holds_too_much_is_refused(tmp_path, bounds):
    files = [Member(name=f"{n}", content=bytes(2000)) for n in range(6)]
    (tmp_path / "layer.tar").write_bytes(layer(*files))
    with pytest.raises(ImageFault, match="it holds more than an image may"):
        unpack_foreign(tmp_path / "layer.tar", tmp_path / "out", **bounds)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_would_fill_the_memory_is_refused(tmp_path, kind):
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, HEADER_BYTES * 1000
    with pytest.raises(ImageFault, match="a header says that it has 8388608000 bytes"):
        unpack_tar(tmp_path, info.tobuf() + bytes(1024))


def test_a_tar_that_breaks_off_or_goes_on_with_something_else_is_refused(tmp_path):
    whole = layer(Member(name="a", content=bytes(5000)), Member(name="b"))
    for content in (whole[:2000], whole[:-1536] + b"garbage" * 300, b"no tar at all" * 100):
        with pytest.raises(ImageFault, match="refused: layer layer"):
            unpack_tar(tmp_path, content)
        remove_tree(tmp_path / "out")


def test_a_damaged_layer_is_unpacked_anew_when_a_mark_is_lost(tmp_path):
    store = Store(tmp_path)
    content = layer(folder("a"), Member(name="a/.wh..wh..opq"), Member(name="a/b"))
    (tmp_path / "draft").write_bytes(content)
    diff_id = Digest(digest(content))
    keep_layer(store, tmp_path / "draft", diff_id)
    out = unpacked(store, diff_id, how=unpack_foreign)
    (mark,) = os.listxattr(out / "a")
    os.removexattr(out / "a", mark)
    # Another process comes by: this one would remember that it was whole.
    again = Store(tmp_path / "." / ".." / tmp_path.name)
    assert is_opaque(unpacked(again, diff_id, how=unpack_foreign) / "a")


def test_others_cannot_get_at_programs_that_run_as_root(tmp_path):
    store = Store(tmp_path)
    content = layer(Member(name="su", mode=0o4755))
    (tmp_path / "draft").write_bytes(content)
    keep_layer(store, tmp_path / "draft", Digest(digest(content)))
    out = unpacked(store, Digest(digest(content)), how=unpack_foreign)
    assert (out / "su").stat().st_mode & 0o4000
    assert stat.S_IMODE(out.parent.stat().st_mode) == 0o700


def test_a_layer_is_unpacked_once_however_many_want_it(tmp_path):
    store = Store(tmp_path)
    content = layer(*(Member(name=f"f{n}", content=b"x" * 100) for n in range(300)))
    (tmp_path / "draft").write_bytes(content)
    keep_layer(store, tmp_path / "draft", Digest(digest(content)))
    times: list[Path] = []

    def how(tar: Path, out: Path) -> None:
        times.append(out)
        unpack_foreign(tar, out)

    wanting = [
        threading.Thread(target=lambda: unpacked(store, Digest(digest(content)), how=how))
        for _ in range(8)
    ]
    for thread in wanting:
        thread.start()
    for thread in wanting:
        thread.join()
    assert len(times) == 1


def test_it_reads_what_tarfile_writes(tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(Path(__file__).parent, "here", filter=lambda i: None if "cache" in i.name else i)
    found = unpack_tar(tmp_path, out.getvalue())
    assert (found / "here" / Path(__file__).name).read_bytes() == Path(__file__).read_bytes()
