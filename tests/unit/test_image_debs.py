"""A .deb is read in memory or refused by name; many of them make a root file system."""

import gzip
import io
import lzma
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import ImageFault
from sandbox.runtime.image.debfile import ar_members, read_deb, read_setup
from sandbox.runtime.image.debs import debs_entries
from sandbox.runtime.image.entry import Entry

CONTROL = "Package: toy\nVersion: 1\nArchitecture: amd64\nDescription: a toy\n"


Member = tuple[tarfile.TarInfo, bytes]


def member(
    name: str,
    data: bytes = b"",
    *,
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
    mode: int = 0o644,
) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname, info.mode, info.mtime = kind, len(data), target, mode, 7
    return info, data


def tar(*members: Member) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def ar(**members: bytes) -> bytes:
    parts = [b"!<arch>\n"]
    for name, data in members.items():
        header = f"{name.replace('_', '.'):<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n"
        parts += [header.encode(), data, b"\n" * (len(data) % 2)]
    return b"".join(parts)


def deb(
    folder: Path,
    *members: Member,
    name: str = "toy",
    suffix: str = "xz",
    pack: Callable[[bytes], bytes] = lzma.compress,
) -> Path:
    path = folder / f"{name}.deb"
    text = CONTROL.replace("toy", name, 1)
    control = gzip.compress(tar(member("./control", text.encode())))
    path.write_bytes(
        ar(
            debian_binary=b"2.0\n",
            control_tar_gz=control,
            **{f"data_tar{'_' if suffix else ''}{suffix}": pack(tar(*members))},
        )
    )
    return path


def test_files_folders_and_links_are_read(tmp_path):
    path = deb(
        tmp_path,
        member("./", kind=tarfile.DIRTYPE),
        member("./opt/", kind=tarfile.DIRTYPE, mode=0o755),
        member("./opt/tool", b"#!/bin/sh\n", mode=0o755),
        member("./opt/alias", kind=tarfile.SYMTYPE, target="tool"),
        member("./opt/same", kind=tarfile.LNKTYPE, target="./opt/tool"),
    )
    found = read_deb(path, "toy_1")
    assert found.control == CONTROL
    assert found.entries == (
        Entry("opt", "folder", 0o755, 7),
        Entry("opt/tool", "file", 0o755, 7, data=b"#!/bin/sh\n"),
        Entry("opt/alias", "symlink", 0o777, 7, target="tool"),
        Entry("opt/same", "hardlink", 0o644, 7, target="opt/tool"),
    )


def test_files_of_the_old_folders_land_in_merged_usr(tmp_path):
    path = deb(
        tmp_path,
        member("./bin/ls", b"x"),
        member("./lib/x.so", kind=tarfile.LNKTYPE, target="./bin/ls"),
    )
    entries = read_deb(path, "toy_1").entries
    assert [(e.path, e.target) for e in entries] == [
        ("usr/bin/ls", ""),
        ("usr/lib/x.so", "usr/bin/ls"),
    ]


def test_programs_lose_setuid_and_setgid(tmp_path):
    path = deb(tmp_path, member("./usr/bin/su", b"x", mode=0o6755))
    assert read_deb(path, "toy_1").entries[0].mode == 0o755


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), ("gz", gzip.compress)])
def test_other_compressions_are_read(tmp_path, suffix, pack):
    path = deb(tmp_path, member("./a", b"content"), suffix=suffix, pack=pack)
    assert read_deb(path, "toy_1").entries[0].data == b"content"


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
def test_zstd_is_read_by_the_zstd_program(tmp_path):
    def pack(data):
        return subprocess.run(["zstd", "-c"], input=data, stdout=-1, check=True).stdout

    path = deb(tmp_path, member("./a", b"content"), suffix="zst", pack=pack)
    assert read_deb(path, "toy_1").entries[0].data == b"content"


def test_without_the_zstd_program_the_fault_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    path = deb(tmp_path, member("./a"), suffix="zst")
    with pytest.raises(ImageFault, match=r"toy_1: .*zstd") as caught:
        read_deb(path, "toy_1")
    assert "apt-get install zstd" in caught.value.hint


@pytest.mark.parametrize(
    "bad",
    [
        member("../outside", b"x"),
        member("./a/../../outside", b"x"),
        member("./a", kind=tarfile.LNKTYPE, target="../etc/shadow"),
        member("./dev/null", kind=tarfile.CHRTYPE),
        member("./pipe", kind=tarfile.FIFOTYPE),
    ],
)
def test_what_would_leave_the_image_is_refused_by_name(tmp_path, bad):
    with pytest.raises(ImageFault, match="toy_1"):
        read_deb(deb(tmp_path, bad), "toy_1")


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_a_deb_or_a_fault(tmp_path_factory, noise, begins_well):
    path = tmp_path_factory.getbasetemp() / "noise.deb"
    path.write_bytes(b"!<arch>\n" * begins_well + noise)
    with pytest.raises(ImageFault, match="noise_1"):
        read_deb(path, "noise_1")


@given(st.integers(0, 10**6))
def test_a_cut_deb_is_a_fault(tmp_path_factory, where):
    folder = tmp_path_factory.getbasetemp()
    path = deb(folder, member("./a", b"content"))
    whole = path.read_bytes()
    path.write_bytes(whole[: where % len(whole)])
    with pytest.raises(ImageFault, match="cut_1"):
        read_deb(path, "cut_1")


def test_ar_members_come_with_their_names_and_padding():
    assert list(ar_members(ar(a=b"odd", b=b"even"))) == [("a", b"odd"), ("b", b"even")]


def base_files(folder: Path) -> Path:
    return deb(
        folder,
        member("./usr/share/base-files/profile", b"umask 022\n"),
        member("./usr/share/base-passwd/passwd.master", b"root:*:0:0:root:/root:/bin/bash\n"),
        member("./usr/share/base-passwd/group.master", b"root:*:0:\n"),
        name="base",
    )


def file_system(*debs: Path, below: str = "") -> dict[str, Entry]:
    return {e.path: e for e in debs_entries([(d.name, d) for d in debs], below)}


def test_accounts_and_links_are_there_without_maintainer_scripts(tmp_path):
    found = file_system(base_files(tmp_path))
    assert found["etc/passwd"].data == b"root:*:0:0:root:/root:/bin/bash\n"
    assert found["etc/shadow"].data == b"root:*:19000:0:99999:7:::\n"
    assert found["bin"] == Entry("bin", "symlink", 0o777, target="usr/bin")
    assert (found["tmp"].mode, found["root"].mode) == (0o1777, 0o700)
    assert found["etc/resolv.conf"].data == b""


def test_a_package_without_base_files_brings_no_accounts(tmp_path):
    found = file_system(deb(tmp_path, member("./usr/bin/tool", b"x")))
    assert "etc/passwd" not in found
    assert "bin" not in found


def test_the_best_present_program_stands_for_the_alternative(tmp_path):
    with_less = deb(tmp_path, member("./bin/more", b"m"), member("./usr/bin/less", b"l"), name="a")
    only_more = deb(tmp_path, member("./bin/more", b"m"), name="b")
    assert file_system(with_less)["usr/bin/pager"].target == "less"
    assert file_system(only_more)["usr/bin/pager"].target == "more"
    assert "usr/bin/awk" not in file_system(only_more)


def test_manuals_go_and_licences_stay(tmp_path):
    found = file_system(
        deb(
            tmp_path,
            member("./usr/share/doc/toy/copyright", b"free"),
            member("./usr/share/doc/toy/changelog.gz", b"long"),
            member("./usr/share/man/man1/toy.1.gz", b"manual"),
            member("./usr/share/locale/de/toy.mo", b"deutsch"),
        )
    )
    assert [p for p in found if p.startswith("usr/share/") and found[p].kind == "file"] == [
        "usr/share/doc/toy/copyright"
    ]


def test_dpkg_knows_what_is_installed_in_this_layer_and_below(tmp_path):
    first = file_system(deb(tmp_path, member("./a"), name="zeta"))["var/lib/dpkg/status"].data
    both = file_system(deb(tmp_path, member("./b"), name="alpha"), below=first.decode())
    text = both["var/lib/dpkg/status"].data.decode()
    assert text.index("Package: alpha\nStatus: install ok installed\nVersion: 1\n") == 0
    assert text.count("Package: zeta\n") == 1


def test_every_folder_above_a_file_has_an_entry(tmp_path):
    found = file_system(deb(tmp_path, member("./a/b/c/file", b"x")))
    assert {"a", "a/b", "a/b/c"} <= set(found)
    assert found["a/b"].kind == "folder"


def test_what_is_run_when_a_package_is_set_up_is_read_and_not_run(tmp_path: Path):
    def packed(*more: Member) -> Path:
        control = gzip.compress(tar(member("./control", CONTROL.encode()), *more))
        path = tmp_path / "x.deb"
        path.write_bytes(ar(debian_binary=b"2.0\n", control_tar_gz=control))
        return path

    assert read_setup(packed(member("./postinst", b"#!/bin/sh\n")), "x") == b"#!/bin/sh\n"
    assert read_setup(packed(), "x") == b""
    (tmp_path / "y.deb").write_bytes(b"no")
    with pytest.raises(ImageFault, match="y is not a readable"):
        read_setup(tmp_path / "y.deb", "y")
