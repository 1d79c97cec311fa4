"""Archives in memory: the same bytes for the same entries, and no trust in anybody else's."""

import io
import tarfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.formats.digest import Entry
from sandbox.runtime.tarball import TooLarge, pack, read

names = st.lists(
    st.binary(min_size=1, max_size=8)
    .map(lambda b: b.replace(b"/", b"_").replace(b"\0", b"_").decode("utf-8", "surrogateescape"))
    .filter(lambda n: n not in (".", "..")),
    min_size=1,
    max_size=3,
).map("/".join)
targets = st.binary(min_size=1, max_size=20).filter(lambda b: b"\0" not in b)
entries = st.lists(
    st.one_of(
        st.builds(Entry, names, st.sampled_from(["file", "exec"]), st.binary(max_size=600)),
        st.builds(Entry, names, st.just("link"), targets),
    ),
    unique_by=lambda e: e.path,
    max_size=5,
)


def found(archive: bytes, *, max_bytes: int = 1 << 20, max_files: int = 100) -> list[Entry]:
    return list(read(iter((archive,)), max_bytes=max_bytes, max_files=max_files))


def a_tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in more.items():
        setattr(info, key, value)
    return info


@given(entries)
def test_what_is_packed_is_read_again(packed):
    assert found(pack(packed)) == sorted(packed)


@given(entries, st.randoms(use_true_random=False))
def test_the_archive_does_not_depend_on_order(packed, random):
    mixed = list(packed)
    random.shuffle(mixed)
    assert pack(mixed) == pack(packed)


@given(entries, st.integers(1, 700))
def test_how_the_stream_is_cut_makes_no_difference(packed, size):
    archive = pack(packed)
    blocks = (archive[i : i + size] for i in range(0, len(archive), size))
    assert list(read(blocks, max_bytes=1 << 20, max_files=100)) == sorted(packed)


def test_everything_in_an_archive_is_root_s_and_of_one_date():
    with tarfile.open(fileobj=io.BytesIO(pack([Entry("a", "exec", b"x")]))) as tar:
        (info,) = tar.getmembers()
    assert (info.uid, info.gid, info.mode, info.mtime) == (0, 0, 0o755, 946684800)


@pytest.mark.parametrize(
    "kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.CONTTYPE]
)
def test_what_is_neither_file_nor_link_is_left_out(kind):
    archive = a_tar((member("odd", kind), b""), (member("a"), b"x"))
    assert [e for e in found(archive) if e.data] == [Entry("a", "file", b"x")]
    assert all(e.kind == "file" for e in found(archive))


def test_a_hard_link_is_a_copy_of_what_came_before_it_and_nothing_otherwise():
    archive = a_tar(
        (member("early", tarfile.LNKTYPE, linkname="a"), b""),
        (member("a", mode=0o755), b"x"),
        (member("b", tarfile.LNKTYPE, linkname="a"), b""),
        (member("c", tarfile.LNKTYPE, linkname="/etc/passwd"), b""),
    )
    assert found(archive) == [Entry("a", "exec", b"x"), Entry("b", "exec", b"x")]


def test_hard_links_cannot_multiply_a_file_past_the_limit():
    links = [(member(f"l{i}", tarfile.LNKTYPE, linkname="a"), b"") for i in range(50)]
    with pytest.raises(TooLarge):
        found(a_tar((member("a"), b"x" * 1000), *links), max_bytes=10_000)


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "..", "a/./b", "a//b", ""])
def test_names_that_lead_elsewhere_are_refused(name):
    archive = a_tar((member("a"), b"x"))
    archive = archive.replace(b"a" + bytes(99), name.encode().ljust(100, b"\0"), 1)
    fixed = bytearray(archive)
    fixed[148:156] = b" " * 8
    fixed[148:156] = b"%06o\0 " % sum(fixed[:512])
    with pytest.raises(tarfile.TarError):
        found(bytes(fixed))


def test_a_sparse_file_cannot_claim_more_than_is_allowed():
    info = member("s")
    info.pax_headers = {"GNU.sparse.size": str(1 << 50), "GNU.sparse.map": "0,0"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info)
    with pytest.raises((TooLarge, tarfile.TarError)):
        found(out.getvalue())


def test_a_file_that_claims_to_be_huge_is_too_large_or_cut_short():
    info = member("big")
    info.size = 1 << 45
    with pytest.raises((TooLarge, tarfile.TarError)):
        found(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096))


def test_more_bytes_than_allowed_are_too_large():
    packed = [Entry("a", "file", b"x" * 600), Entry("b", "file", b"x" * 600)]
    assert len(found(pack(packed), max_bytes=1200)) == 2
    with pytest.raises(TooLarge):
        found(pack(packed), max_bytes=1199)


def test_more_files_than_allowed_are_too_large():
    packed = [Entry(str(i), "file", b"") for i in range(5)]
    assert len(found(pack(packed), max_files=5)) == 5
    with pytest.raises(TooLarge):
        found(pack(packed), max_files=4)


def test_a_stream_of_what_nobody_wants_is_too_large_in_the_end():
    def endless() -> Iterator[bytes]:
        info = member("z", b"Z")
        info.size = 1 << 20
        while True:
            yield info.tobuf() + bytes(1 << 20)

    with pytest.raises(TooLarge):
        list(read(endless(), max_bytes=1, max_files=10))


@given(st.integers(0, 3000))
def test_an_archive_cut_anywhere_gives_whole_entries_or_a_tar_error(at):
    packed = [Entry("a", "file", b"x" * 700), Entry("b", "file", b"y" * 700)]
    archive = pack(packed)[:at]
    try:
        got = found(archive)
    except tarfile.TarError:
        return
    assert got == packed[: len(got)]


@given(st.binary(max_size=2000))
def test_no_bytes_break_the_reader(data):
    try:
        found(data)
    except (tarfile.TarError, TooLarge):
        return


@given(st.integers(0, 511), st.integers(0, 255))
def test_no_changed_byte_of_a_header_breaks_the_reader(at, value):
    archive = bytearray(pack([Entry("a" * 120, "file", b"x"), Entry("b", "link", b"to")]))
    for place in (at, at + 1024, at + 1536):
        changed = archive.copy()
        changed[place % len(archive)] = value
        block = place // 512 * 512
        changed[block + 148 : block + 156] = b" " * 8
        changed[block + 148 : block + 156] = b"%06o\0 " % sum(changed[block : block + 512])
        try:
            found(bytes(changed))
        except (tarfile.TarError, TooLarge):
            continue
