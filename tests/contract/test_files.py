"""What goes into a box and comes out of it, on every runtime."""

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box, BoxSpec, Image, Runtime, Seed
from sandbox.runtime.store import Store
from tests.contract.conftest import LIMITS
from tests.support.tars import Entry, make_tar, read_tar, unpacked

TREE = (
    Entry(name="tree", folder=True, mode=0o755),
    Entry(name="tree/plain", content=b"text\n"),
    Entry(name="tree/run.sh", content=b"#!/bin/sh\necho ran\n", mode=0o755),
    Entry(name="tree/secret", content=b"s", mode=0o600),
    Entry(name="tree/empty"),
    Entry(name="tree/binary", content=bytes(range(256)) * 5000),
    Entry(name="tree/with space", content=b"1"),
    Entry(name="tree/new\nline", content=b"2"),
    Entry(name="tree/ümläut", content=b"3"),
    Entry(name="tree/\udcff\udcfe", content=b"4"),
    Entry(name="tree/-dash", content=b"5"),
    Entry(name="tree/" + "long" * 50, content=b"6"),
    Entry(name="tree/deep", folder=True, mode=0o700),
    Entry(name="tree/deep/file", content=b"7"),
    Entry(name="tree/link", target="plain", mode=0o777),
    Entry(name="tree/broken", target="no/such", mode=0o777),
    Entry(name="tree/out", target="/etc/passwd", mode=0o777),
    Entry(name="tree/up", target="../../../etc", mode=0o777),
)


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Seed:
    # Its own folder each time: a shuffled order can ask for it twice.
    archive = make_tar(
        [
            Entry(name="repo", folder=True, mode=0o755),
            Entry(name="repo/file", content=b"seeded\n"),
            Entry(name="etc", folder=True, mode=0o755),
            Entry(name="etc/added", content=b"beside the image's\n"),
        ]
    )
    folder = tmp_path_factory.mktemp("seed")
    tar = folder.with_suffix(".tar")
    tar.write_bytes(archive)
    return Seed(tar=tar, folder=unpacked(archive, folder))


def test_what_is_put_can_be_got_back_as_it_was(box: Box):
    box.put(make_tar(TREE), "/tmp")
    assert read_tar(box.get("/tmp/tree")) == {entry.name: entry for entry in TREE}


def test_programs_see_what_was_put(box: Box):
    box.put(make_tar(TREE), "/tmp")
    assert box.exec(["/tmp/tree/run.sh"], seconds=30).stdout == b"ran\n"
    assert box.exec(["cat", "/tmp/tree/link"], seconds=30).stdout == b"text\n"
    assert box.exec(["cat", "/tmp/tree/new\nline"], seconds=30).stdout == b"2"


def test_what_is_put_is_root_s_whoever_owned_it(box: Box):
    box.put(make_tar([Entry(name="mine", content=b"x", owner=1000)]), "/tmp")
    assert box.exec(["stat", "-c", "%u:%g", "/tmp/mine"], seconds=30).stdout == b"0:0\n"


def test_putting_replaces_files_and_keeps_their_neighbours(box: Box):
    box.put(make_tar([Entry(name="a", content=b"old"), Entry(name="b", content=b"b")]), "/tmp")
    box.put(make_tar([Entry(name="a", content=b"new")]), "/tmp")
    assert box.exec(["cat", "/tmp/a", "/tmp/b"], seconds=30).stdout == b"newb"


def test_putting_over_a_link_replaces_the_link_not_its_target(box: Box):
    script = "echo target > /tmp/target; ln -s /tmp/target /tmp/name"
    assert box.exec(["sh", "-c", script], seconds=30).exit_code == 0
    box.put(make_tar([Entry(name="name", content=b"new\n")]), "/tmp")
    assert box.exec(["cat", "/tmp/name", "/tmp/target"], seconds=30).stdout == b"new\ntarget\n"


def test_putting_makes_the_folder(box: Box):
    box.put(make_tar([Entry(name="file", content=b"x")]), "/new/folder")
    found = box.exec(["stat", "-c", "%u:%g %a", "/new", "/new/folder"], seconds=30).stdout
    assert found == b"0:0 755\n0:0 755\n"
    assert box.exec(["cat", "/new/folder/file"], seconds=30).stdout == b"x"


def test_a_broken_archive_is_a_fault(box: Box):
    with pytest.raises(RuntimeFault):
        box.put(b"this is no archive" * 100, "/tmp")


def test_an_archive_that_leads_out_of_its_folder_is_a_fault(box: Box):
    with pytest.raises(RuntimeFault):
        box.put(make_tar([Entry(name="../etc/passwd", content=b"x")]), "/tmp")
    assert box.exec(["grep", "root", "/etc/passwd"], seconds=30).exit_code == 0


def test_a_single_file_can_be_got(box: Box):
    box.put(make_tar(TREE), "/tmp")
    assert read_tar(box.get("/tmp/tree/secret")) == {
        "secret": Entry(name="secret", content=b"s", mode=0o600)
    }


def test_an_empty_folder_can_be_got(box: Box):
    assert box.exec(["mkdir", "/tmp/void"], seconds=30).exit_code == 0
    assert list(read_tar(box.get("/tmp/void"))) == ["void"]


def test_what_is_not_there_cannot_be_got(box: Box):
    for path in ("/no/such", "/tmp/no-such", "/etc/passwd/below"):
        with pytest.raises(FileNotFoundError):
            list(box.get(path))


def test_a_link_is_got_as_a_link(box: Box):
    assert box.exec(["ln", "-s", "/etc/passwd", "/tmp/link"], seconds=30).exit_code == 0
    assert read_tar(box.get("/tmp/link"))["link"].target == "/etc/passwd"


def test_a_link_on_the_way_leads_into_the_box_never_to_the_host(box: Box, store: Store):
    (store.root / "host-only").write_text("host")
    assert box.exec(["ln", "-s", f"/../../../..{store.root}", "/tmp/up"], seconds=30).exit_code == 0
    with pytest.raises(FileNotFoundError):
        list(box.get("/tmp/up/host-only"))


def test_only_files_folders_and_links_come_out(box: Box):
    script = """
        mkdir /tmp/odd && cd /tmp/odd && echo one > first && ln first second && mkfifo pipe &&
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
    """
    assert box.exec(["sh", "-c", script], seconds=30).exit_code == 0
    got = read_tar(box.get("/tmp/odd"))
    assert sorted(got) == ["odd", "odd/first", "odd/second"]
    assert got["odd/first"].content == got["odd/second"].content == b"one\n"


def test_files_can_be_got_after_the_box_was_stopped(box: Box):
    box.put(make_tar(TREE), "/tmp")
    box.stop()
    box.stop()
    assert read_tar(box.get("/tmp/tree")) == {entry.name: entry for entry in TREE}
    with pytest.raises(FileNotFoundError):
        list(box.get("/tmp/no-such"))
    with pytest.raises(RuntimeFault):
        box.exec(["true"], seconds=30)


def test_files_of_a_destroyed_box_are_a_fault(runtime: Runtime, spec: BoxSpec):
    box = runtime.create(spec)
    box.destroy()
    with pytest.raises(RuntimeFault):
        list(box.get("/etc/passwd"))
    with pytest.raises(RuntimeFault):
        box.put(make_tar(TREE), "/tmp")


def test_the_image_s_files_are_root_s_with_their_modes(box: Box):
    result = box.exec(["stat", "-c", "%u:%g %a %n", "/etc/passwd", "/tmp", "/root"], seconds=30)
    assert result.stdout == b"0:0 644 /etc/passwd\n0:0 1777 /tmp\n0:0 755 /root\n"


def test_seeds_are_there_from_the_start(runtime: Runtime, image: Image, seed: Seed):
    spec = BoxSpec(image=image, seeds=(seed,), limits=LIMITS, workdir="/repo")
    with runtime.create(spec) as box:
        result = box.exec(["cat", "file", "/etc/added", "/etc/passwd"], seconds=30)
        assert result.stdout.startswith(b"seeded\nbeside the image's\nroot:")
        assert box.exec(["stat", "-c", "%u:%g", "file"], seconds=30).stdout == b"0:0\n"


def test_what_a_box_writes_reaches_neither_the_store_nor_the_next_box(
    runtime: Runtime, image: Image, seed: Seed
):
    spec = BoxSpec(image=image, seeds=(seed,), limits=LIMITS)
    before = (image.layers[0].folder / "etc/passwd").read_bytes()
    script = "echo gone > /repo/file && rm /etc/passwd && rm -r /usr/lib && echo new > /etc/new"
    with runtime.create(spec) as box:
        assert box.exec(["sh", "-c", script], seconds=30).exit_code == 0
    assert (image.layers[0].folder / "etc/passwd").read_bytes() == before
    assert (seed.folder / "repo/file").read_bytes() == b"seeded\n"
    with runtime.create(spec) as box:
        assert box.exec(["cat", "/repo/file"], seconds=30).stdout == b"seeded\n"
        assert box.exec(["cat", "/etc/passwd"], seconds=30).stdout == before
        assert box.exec(["cat", "/etc/new"], seconds=30).exit_code == 1
