"""A snapshot is laid on the host's file system, as its root: so nothing of it leads elsewhere."""

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.runtime.embedded.layer import lay

pytestmark = [
    pytest.mark.box,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make whiteouts"),
]
OPAQUE = "trusted.overlay.opaque"


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    old = os.umask(0o022)
    yield
    os.umask(old)


class Place:
    def __init__(self, folder: Path) -> None:
        self.upper, self.lower, self.outside = (
            folder / "upper",
            folder / "lower",
            folder / "outside",
        )
        for path in (self.upper, self.lower, self.outside):
            path.mkdir()
        (self.lower / "old").mkdir(mode=0o750)
        os.chown(self.lower / "old", 7, 8)

    def lay(self, *members: tarfile.TarInfo) -> None:
        tar = self.outside.parent / "tar"
        with tarfile.open(tar, "w", format=tarfile.PAX_FORMAT) as out:
            for member in members:
                out.addfile(member, io.BytesIO(b"x" * member.size))
        with tar.open("rb") as f:
            lay(f.fileno(), str(self.upper), [str(self.lower)], OPAQUE)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, 0o4755
    info.size = 3 if kind == tarfile.REGTYPE else 0
    return info


def test_files_come_with_modes_owners_and_times_to_the_nanosecond(place: Place):
    info = member("new")
    info.uid, info.gid, info.pax_headers = 5, 6, {"mtime": "1700000000.123456789"}
    place.lay(info)
    found = (place.upper / "new").stat()
    assert (found.st_uid, found.st_gid, found.st_size) == (5, 6, 3)
    assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (0o4755, 1700000000123456789)


def test_a_folder_that_is_not_listed_is_as_it_is_below(place: Place):
    place.lay(member("old/new"))
    found = (place.upper / "old").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (7, 8, 0o750)


def test_what_is_removed_becomes_a_whiteout(place: Place):
    place.lay(member("old/.wh.gone"))
    found = (place.upper / "old" / "gone").lstat()
    assert stat.S_ISCHR(found.st_mode)
    assert found.st_rdev == 0


def test_the_mark_of_others_layers_hides_what_is_below(place: Place):
    place.lay(member("old", tarfile.DIRTYPE), member("old/.wh..wh..opq"))
    assert os.getxattr(place.upper / "old", OPAQUE) == b"y"


def test_hard_links_are_one_file(place: Place):
    place.lay(member("one"), member("two", tarfile.LNKTYPE, "one"))
    assert (place.upper / "two").stat().st_nlink == 2


@pytest.mark.parametrize(
    "members",
    [
        (member("../outside/x"),),
        (member("/x"),),
        (member("a/../../outside/x"),),
        (member("old//x"),),
        (member("./x"),),
        (member("nowhere/x"),),
        (member("way", tarfile.SYMTYPE, "../outside"), member("way/x")),
        (member("way", tarfile.SYMTYPE, "../outside"), member("way/.wh.kept")),
        (member("way", tarfile.SYMTYPE, "../outside"), member("way", tarfile.DIRTYPE)),
        (member("way", tarfile.SYMTYPE, "../outside/kept"), member("way")),
        (member("hard", tarfile.LNKTYPE, "../outside/kept"),),
        (member("hard", tarfile.LNKTYPE, "/etc/passwd"),),
        (member("way", tarfile.SYMTYPE, "../outside"), member("hard", tarfile.LNKTYPE, "way/kept")),
        (member("disk", tarfile.BLKTYPE),),
        (member("memory", tarfile.CHRTYPE),),
        (member("twice"), member("twice")),
    ],
    ids=lambda members: " then ".join(f"{m.name} {m.linkname} {m.type.decode()}" for m in members),
)
def test_what_leads_elsewhere_is_refused_and_nothing_is_outside(place: Place, members):
    (place.outside / "kept").write_text("kept")
    with pytest.raises(OSError, match="the snapshot cannot be restored"):
        place.lay(*members)
    assert [p.name for p in place.outside.iterdir()] == ["kept"]
    assert (place.outside / "kept").stat().st_nlink == 1
    assert (place.outside / "kept").read_text() == "kept"
