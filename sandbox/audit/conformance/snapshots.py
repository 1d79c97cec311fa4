"""A box's changes as a file: `snapshot`, and boxes that start with one."""

import hashlib
import json
import tarfile
from dataclasses import replace
from pathlib import Path

from sandbox.audit.conformance.bench import (
    Bench,
    background,
    eventually,
    expect,
    expect_list,
    hold,
    python,
    refused,
    said,
    sh,
)
from sandbox.audit.conformance.registry import Group
from sandbox.audit.conformance.state import changed
from sandbox.errors import RuntimeFault
from sandbox.model.task import Digest
from sandbox.runtime.base import Box
from sandbox.runtime.spec import Image

GROUP = Group("snapshot")
CHANGE = """
cd /seeded
echo more >> file; rm script; rm -r folder; mkdir folder; echo other > folder/other
rm link; echo file > link; chmod 600 /etc/seeded; rm -r gone; mv old moved; rm /etc/group
mkdir -m 711 empty; mkdir -m 2775 shared; chown 1234:2345 shared
echo 1 > one; chown 1234:2345 one; chmod 4755 one; ln one two; ln -s one three; ln -s /etc four
mkfifo pipe; printf x > "$(printf 'odd\\nname \\377')"
rm tofolder; mkdir tofolder; : > tofolder/in; chmod 700 kept; chown 5:6 kept
touch -d @1500000000 one empty tofolder/in; touch -h -d @1400000000 three; touch -d @1500000000.25 moved
"""
_LIST = """
import hashlib, json, os, stat, sys
found = {}
for top in ("/seeded", "/etc", "/tmp"):
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            s = os.lstat(path)
            kind = stat.S_IFMT(s.st_mode)
            more = ""
            if stat.S_ISREG(s.st_mode):
                more = hashlib.sha256(open(path, "rb").read()).hexdigest()
            elif stat.S_ISLNK(s.st_mode):
                more = os.readlink(path).decode("utf-8", "surrogateescape")
            # A folder's own time tells when something was put into it, no more.
            when = 0 if stat.S_ISDIR(s.st_mode) else s.st_mtime_ns
            found[repr(path)] = [oct(s.st_mode), s.st_uid, s.st_gid, when, more]
print(json.dumps(found))
"""


def tree(box: Box) -> dict[str, list[object]]:
    """Everything that a snapshot should bring back, as a program in the box sees it."""
    found: dict[str, list[object]] = json.loads(python(box, _LIST))
    # Their content is made for each box by some engines; pipes need not come along.
    own = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab", "/seeded/pipe")
    return {path: entry for path, entry in found.items() if path[2:-1] not in own}


def compare(found: dict[str, list[object]], wanted: dict[str, list[object]]) -> None:
    different = {
        path: (wanted.get(path), found.get(path))
        for path in sorted(wanted.keys() | found.keys())
        if wanted.get(path) != found.get(path)
    }
    hold(not different, f"the same tree; different (wanted, found): {different}")


@GROUP.check("snapshot")
def a_snapshot_brings_everything_back(bench: Bench) -> None:
    """Contents, modes, owners, times, links, empty folders; and what was deleted is not there."""
    with bench.box(seeds=(bench.seed,)) as box:
        sh(box, CHANGE)
        wanted, before = tree(box), [c for c in changed(box) if c.path != "/seeded/pipe"]
        taken = box.snapshot(bench.scratch / "tar")
        expect(taken.image, bench.image.digest, "the image it is of")
        expect(taken.seeds, (bench.seed.folder.name,), "the seeds it is of")
    with bench.box(seeds=(bench.seed,), snapshot=taken) as box:
        compare(tree(box), wanted)
        found = [c for c in changed(box) if c.path != "/seeded/pipe"]
        expect_list(found, before, "changes of the new box")
        said(box, "rm", "/seeded/one")
        box.reset()
        compare(tree(box), wanted)


@GROUP.check("snapshot")
def two_snapshots_in_a_row_are_the_same_file(bench: Bench) -> None:
    """The same changes, the same bytes: `sha256` is the file's."""
    with bench.box(seeds=(bench.seed,)) as box:
        sh(box, CHANGE)
        one, two = (box.snapshot(bench.scratch / name) for name in ("one", "two"))
        box.stop()
        three = box.snapshot(bench.scratch / "three")
    expect(two.sha256, one.sha256, "sha256 of the second")
    expect(three.sha256, one.sha256, "sha256 of the one after `stop`")
    expect(hashlib.sha256(one.tar.read_bytes()).hexdigest(), one.sha256, "sha256 of the file")


@GROUP.check("snapshot")
def a_snapshot_of_a_restored_box_is_the_same_again(bench: Bench) -> None:
    """Restored and taken once more, nothing has been added or lost."""
    with bench.box(seeds=(bench.seed,)) as box:
        sh(box, CHANGE)
        one = box.snapshot(bench.scratch / "one")
    with bench.box(seeds=(bench.seed,), snapshot=one) as box:
        two = box.snapshot(bench.scratch / "two")
    names = [_names(snapshot.tar) for snapshot in (one, two)]
    expect_list(names[1], names[0], "names in the second")


@GROUP.check("snapshot")
def a_snapshot_is_a_layer_in_a_fixed_order(bench: Bench) -> None:
    """An OCI layer: relative names, folders before what is in them, `.wh.NAME` for what is gone."""
    with bench.box(seeds=(bench.seed,)) as box:
        sh(box, CHANGE)
        names = _names(box.snapshot(bench.scratch / "tar").tar)
    hold("seeded/.wh.script" in names, f"a whiteout is among {names}")
    hold(all(not n.startswith(("/", "./")) and ".." not in n.split("/") for n in names), f"{names}")
    expect(len(names), len(set(names)), "names, each once")
    for position, name in enumerate(names):
        parent = name.rpartition("/")[0]
        hold(not parent or parent not in names[position:], f"{parent} comes before {name}")


@GROUP.check("snapshot")
def a_file_that_is_called_like_a_whiteout_removes_nothing(bench: Bench) -> None:
    """Programs choose names. Such a snapshot is refused, or the name is only a name."""
    with bench.box(seeds=(bench.seed,)) as box:
        sh(box, ": > /seeded/.wh.file; mkdir /etc/x; : > /etc/.wh..wh..opq; : > /etc/.wh.passwd")
        try:
            taken = box.snapshot(bench.scratch / "tar")
        except RuntimeFault:
            return
    try:
        with bench.box(seeds=(bench.seed,), snapshot=taken) as box:
            expect(said(box, "cat", "/seeded/file"), "seeded\n", "the file of the other name")
            hold(said(box, "cat", "/etc/passwd").startswith("root:"), "the image's files are there")
    except RuntimeFault:
        return


@GROUP.check("snapshot")
def a_snapshot_that_was_altered_is_refused(bench: Bench) -> None:
    """`create` raises RuntimeFault, for a byte, for a missing file."""
    with bench.box() as box:
        sh(box, "echo x > /tmp/x")
        taken = box.snapshot(bench.scratch / "tar")
    data = bytearray(taken.tar.read_bytes())
    data[600] ^= 1
    taken.tar.write_bytes(data)
    with refused("a box of an altered snapshot", RuntimeFault):
        bench.box(snapshot=taken).destroy()
    taken.tar.unlink()
    with refused("a box of a snapshot that is gone", RuntimeFault):
        bench.box(snapshot=taken).destroy()


@GROUP.check("snapshot")
def a_snapshot_of_something_else_is_refused(bench: Bench) -> None:
    """The changes mean nothing without the image and the seeds they were made to."""
    with bench.box() as box:
        taken = box.snapshot(bench.scratch / "tar")
    other: Image = replace(bench.image, digest=Digest("sha256:" + "1" * 64))
    with refused("of another image", RuntimeFault):
        bench.box(snapshot=replace(taken, image=other.digest)).destroy()
    with refused("of a box with other seeds", RuntimeFault):
        bench.box(snapshot=taken, seeds=(bench.seed,)).destroy()


@GROUP.check("snapshot")
def a_box_stands_still_while_a_snapshot_is_taken(bench: Bench) -> None:
    """Two files that are always written together are together in the snapshot; then it goes on."""
    # Whoever is stopped between the two writes has written the first one only, once.
    script = "i=0; while :; do i=$((i+1)); echo $i > /tmp/a; echo $i > /tmp/b; done"
    with bench.box() as box:
        background(box, "sh", "-c", script)
        hold(eventually(lambda: "b" in said(box, "ls", "/tmp").split()), "a counter counts")
        taken = box.snapshot(bench.scratch / "tar")
        before = said(box, "cat", "/tmp/b")
        hold(eventually(lambda: said(box, "cat", "/tmp/b") != before), "the box goes on")
    with bench.box(snapshot=taken) as box:
        one, two = (said(box, "cat", f"/tmp/{n}").strip() or "0" for n in "ab")
    hold(int(one) - int(two) in (0, 1) or "0" in (one, two), f"of one moment: {one} and {two}")


def _names(tar: Path) -> list[str]:
    with tarfile.open(tar, encoding="utf-8", errors="surrogateescape") as source:
        return source.getnames()
