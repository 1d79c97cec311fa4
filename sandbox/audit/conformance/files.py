"""What goes into a box and comes out of it: `put`, `get`, seeds."""

from contextlib import suppress

from sandbox.audit.conformance.bench import Bench, expect, hold, refused, run, said, sh
from sandbox.audit.conformance.registry import Group
from sandbox.audit.conformance.tars import Entry, make_tar, read_tar
from sandbox.errors import RuntimeFault

GROUP = Group("files")
TMP = "/tmp"
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
    Entry(name="tree/.wh.hidden", content=b"no whiteout"),
    Entry(name="tree/" + "long" * 50, content=b"6"),
    Entry(name="tree/" + "x" * 255, content=b"7"),
    Entry(name="tree/deep", folder=True, mode=0o700),
    Entry(name="tree/deep/file", content=b"8"),
    Entry(name="tree/void", folder=True, mode=0o711),
    Entry(name="tree/link", target="plain", mode=0o777),
    Entry(name="tree/broken", target="no/such", mode=0o777),
    Entry(name="tree/out", target="/etc/passwd", mode=0o777),
    Entry(name="tree/up", target="../../../etc", mode=0o777),
)
DEEP = """
import os, sys
os.mkdir("/tmp/deep")
os.chdir("/tmp/deep")
for _ in range(int(sys.argv[1])):
    os.mkdir("folder-with-a-name")
    os.chdir("folder-with-a-name")
open("bottom", "w").write("reached")
"""


@GROUP.check()
def what_is_put_can_be_got_back_as_it_was(bench: Bench) -> None:
    """Contents, modes, links and names of every kind, UTF-8 or not."""
    with bench.box() as box:
        box.put(make_tar(TREE), TMP)
        found = read_tar(box.get(f"{TMP}/tree"))
    expect(sorted(found), sorted(e.name for e in TREE), "names")
    for entry in TREE:
        hold(
            found[entry.name] == entry,
            f"{entry.name!r} came back as it was: {found[entry.name]!r:.300}",
        )


@GROUP.check()
def programs_see_what_was_put(bench: Bench) -> None:
    """`put` is a change of the box's own file system."""
    with bench.box() as box:
        box.put(make_tar(TREE), TMP)
        expect(said(box, f"{TMP}/tree/run.sh"), "ran\n", "a script")
        expect(said(box, "cat", f"{TMP}/tree/link"), "text\n", "through a link")
        expect(said(box, "cat", f"{TMP}/tree/new\nline"), "2", "an odd name")


@GROUP.check()
def what_is_put_is_root_s_whoever_owned_it(bench: Bench) -> None:
    """`put`: owned by root, also where programs are somebody else."""
    with bench.box(user="1234:2345", workdir="/") as box:
        box.put(make_tar([Entry(name="mine", content=b"x", owner=1000)]), TMP)
        expect(said(box, "stat", "-c", "%u:%g", f"{TMP}/mine"), "0:0\n", "owner")


@GROUP.check()
def putting_replaces_files_and_keeps_their_neighbours(bench: Bench) -> None:
    """`put` into a folder that is there."""
    with bench.box() as box:
        box.put(make_tar([Entry(name="a", content=b"old"), Entry(name="b", content=b"b")]), TMP)
        box.put(make_tar([Entry(name="a", content=b"new")]), TMP)
        expect(said(box, "cat", f"{TMP}/a", f"{TMP}/b"), "newb", "contents")


@GROUP.check()
def putting_over_a_link_replaces_the_link_not_its_target(bench: Bench) -> None:
    """`put`: links that are in the way are replaced."""
    with bench.box() as box:
        sh(box, "echo target > /tmp/target; ln -s /tmp/target /tmp/name; ln /tmp/target /tmp/hard")
        box.put(
            make_tar([Entry(name="name", content=b"new\n"), Entry(name="hard", content=b"2\n")]),
            TMP,
        )
        found = said(box, "cat", f"{TMP}/name", f"{TMP}/hard", f"{TMP}/target")
    expect(found, "new\n2\ntarget\n", "contents of the link's place, the other name's, the target")


@GROUP.check()
def putting_below_a_link_does_not_follow_it(bench: Bench) -> None:
    """A link to a folder, where the archive has a folder."""
    archive = make_tar(
        [Entry(name="way", folder=True, mode=0o755), Entry(name="way/passwd", content=b"x")]
    )
    with bench.box() as box:
        before = said(box, "cat", "/etc/passwd")
        sh(box, "ln -s /etc /tmp/way")
        box.put(archive, TMP)
        expect(said(box, "cat", "/etc/passwd"), before, "the file that the link leads to")
        expect(said(box, "cat", f"{TMP}/way/passwd"), "x", "what was put in the link's place")


@GROUP.check()
def putting_over_a_pipe_or_a_device_replaces_it(bench: Bench) -> None:
    """Nothing is written into it, and nobody waits for its reader."""
    with bench.box() as box:
        sh(box, "mkfifo /tmp/pipe")
        box.put(make_tar([Entry(name="pipe", content=b"file\n")]), TMP)
        expect(said(box, "cat", f"{TMP}/pipe"), "file\n", "what is in its place")


@GROUP.check()
def putting_makes_the_folder(bench: Bench) -> None:
    """`folder` need not be there; what is made of it is root's."""
    with bench.box() as box:
        box.put(make_tar([Entry(name="file", content=b"x")]), "/new/folder")
        found = said(box, "stat", "-c", "%u:%g %a", "/new", "/new/folder")
        expect(found, "0:0 755\n0:0 755\n", "owners and modes")
        expect(said(box, "cat", "/new/folder/file"), "x", "content")


@GROUP.check()
def the_folder_to_put_into_is_looked_for_inside_the_box(bench: Bench) -> None:
    """Links on the way to `folder` lead into the box, never to the host."""
    place = bench.scratch / "outside"
    place.mkdir()
    with bench.box() as box:
        sh(box, 'ln -s "/../../../..$1" /tmp/up', str(place))
        with suppress(RuntimeFault):  # it may refuse, or make the folder inside the box
            box.put(make_tar([Entry(name="file", content=b"x")]), f"{TMP}/up")
    expect(list(place.iterdir()), [], "what arrived on the host")


@GROUP.check()
def a_single_file_can_be_got(bench: Bench) -> None:
    """`get` of a file: one member, named by its last component."""
    with bench.box() as box:
        box.put(make_tar(TREE), TMP)
        found = read_tar(box.get(f"{TMP}/tree/secret"))
    expect(found, {"secret": Entry(name="secret", content=b"s", mode=0o600)}, "members")


@GROUP.check()
def an_empty_folder_can_be_got(bench: Bench) -> None:
    """`get` of a folder: the folder itself is a member."""
    with bench.box() as box:
        sh(box, "mkdir /tmp/void")
        expect(list(read_tar(box.get(f"{TMP}/void"))), ["void"], "members")


@GROUP.check()
def what_is_not_there_cannot_be_got(bench: Bench) -> None:
    """`get` raises FileNotFoundError when there is no such path."""
    with bench.box() as box:
        for path in ("/no/such", f"{TMP}/no-such", "/etc/passwd/below"):
            with refused(path, FileNotFoundError):
                list(box.get(path))


@GROUP.check()
def a_link_is_got_as_a_link(bench: Bench) -> None:
    """Links are never followed at the end of a path."""
    with bench.box() as box:
        sh(box, "ln -s /etc/passwd /tmp/link")
        expect(read_tar(box.get(f"{TMP}/link"))["link"].target, "/etc/passwd", "its target")


@GROUP.check()
def a_link_on_the_way_leads_into_the_box_never_to_the_host(bench: Bench) -> None:
    """`get` resolves inside the box."""
    (bench.scratch / "host-only").write_text("host")
    with bench.box() as box:
        sh(box, 'ln -s "/../../../..$1" /tmp/up', str(bench.scratch))
        with refused("a file of the host", FileNotFoundError):
            list(box.get(f"{TMP}/up/host-only"))
        for path in ("../../../../host-only", "/../host-only"):
            with refused(path, FileNotFoundError):
                list(box.get(f"{TMP}/{path}"))


@GROUP.check()
def only_files_folders_and_links_come_out(bench: Bench) -> None:
    """Pipes and sockets are left out, and do not block; a hard link is a file."""
    script = """
        mkdir /tmp/odd && cd /tmp/odd && echo one > first && ln first second && mkfifo pipe &&
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
    """
    with bench.box() as box:
        sh(box, script)
        found = read_tar(box.get(f"{TMP}/odd"))
    expect(sorted(found), ["odd", "odd/first", "odd/second"], "names")
    expect([found[f"odd/{n}"].content for n in ("first", "second")], [b"one\n"] * 2, "contents")


@GROUP.check()
def a_deep_folder_can_be_got(bench: Bench) -> None:
    """Deeper than any path that the kernel takes in one piece."""
    with bench.box() as box:
        said(box, "python3", "-c", DEEP, "300")
        found = read_tar(box.get(f"{TMP}/deep"))
    expect(len(found), 302, "members")
    expect(
        found["deep/" + "folder-with-a-name/" * 300 + "bottom"].content, b"reached", "the bottom"
    )


@GROUP.check()
def a_file_that_claims_to_be_huge_comes_as_a_stream(bench: Bench) -> None:
    """`get` is an iterator: who has seen enough stops, and the box goes on."""
    with bench.box() as box:
        said(
            box,
            "python3",
            "-c",
            "import os; os.truncate(os.open('/tmp/sparse', 66, 0o644), 1 << 30)",
        )
        stream = box.get(f"{TMP}/sparse")
        taken = 0
        for block in stream:
            taken += len(block)
            if taken > 4 << 20:
                break
        del stream
        hold(taken > 4 << 20, f"the stream begins at once: {taken} bytes")
        expect(said(box, "echo", "fine"), "fine\n", "the box after it")


@GROUP.check()
def files_can_be_got_after_the_box_was_stopped(bench: Bench) -> None:
    """`get` works after `stop`; nothing runs any more."""
    with bench.box() as box:
        box.put(make_tar(TREE), TMP)
        box.stop()
        box.stop()
        found = read_tar(box.get(f"{TMP}/tree"))
        expect(sorted(found), sorted(e.name for e in TREE), "names")
        with refused("what is not there", FileNotFoundError):
            list(box.get(f"{TMP}/no-such"))
        with refused("a program in a stopped box", RuntimeFault):
            run(box, "true")


@GROUP.check()
def files_of_a_destroyed_box_are_a_fault(bench: Bench) -> None:
    """All of a box goes when it is destroyed."""
    box = bench.box()
    box.destroy()
    with refused("get", RuntimeFault):
        list(box.get("/etc/passwd"))
    with refused("put", RuntimeFault):
        box.put(make_tar(TREE), TMP)


@GROUP.check()
def the_image_s_files_are_root_s_with_their_modes(bench: Bench) -> None:
    """The image as it is, whoever unpacked it."""
    with bench.box() as box:
        found = said(box, "stat", "-c", "%u:%g %a %n", "/etc/passwd", TMP)
    expect(found, "0:0 644 /etc/passwd\n0:0 1777 /tmp\n", "owners and modes")


@GROUP.check()
def seeds_are_there_from_the_start(bench: Bench) -> None:
    """`BoxSpec.seeds`: beside the image's files, root's."""
    with bench.box(seeds=(bench.seed,), workdir="/seeded") as box:
        expect(said(box, "cat", "file", "/etc/seeded"), "seeded\nbeside the image's\n", "contents")
        expect(said(box, "stat", "-c", "%u:%g", "file"), "0:0\n", "owner")
        hold(
            said(box, "cat", "/etc/passwd").startswith("root:"), "the image's files are still there"
        )


@GROUP.check()
def what_a_box_writes_reaches_neither_the_store_nor_the_next_box(bench: Bench) -> None:
    """Image and seeds are never written to."""
    before = [(e.folder / "etc/passwd") for e in bench.image.layers]
    kept = {path: path.read_bytes() for path in before if path.exists()}
    script = "echo gone > /seeded/file && rm /etc/passwd && rm -r /etc/group && echo new > /etc/new"
    with bench.box(seeds=(bench.seed,)) as box:
        passwd = said(box, "cat", "/etc/passwd")
        sh(box, script)
    expect({path: path.read_bytes() for path in kept}, kept, "the layers in the store")
    expect((bench.seed.folder / "seeded/file").read_bytes(), b"seeded\n", "the seed in the store")
    with bench.box(seeds=(bench.seed,)) as box:
        expect(said(box, "cat", "/seeded/file"), "seeded\n", "the seed in the next box")
        expect(said(box, "cat", "/etc/passwd"), passwd, "the image in the next box")
        expect(run(box, "cat", "/etc/new").exit_code, 1, "exit code of reading the other's file")
