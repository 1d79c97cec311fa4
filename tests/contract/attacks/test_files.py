"""Files that are meant for whoever reads them from outside, and for whoever removes them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from sandbox.audit.conformance import Bench
from sandbox.audit.conformance.bench import (
    alive,
    background,
    eventually,
    exists,
    python,
    refused,
    run,
    said,
    see,
    sh,
)
from sandbox.audit.conformance.tars import Entry, make_tar, read_tar
from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box
from sandbox.runtime.spec import Mount
from tests.contract.attacks.table import attack

ATTACKS = (
    "swap a folder for a link while it is got",
    "swap a folder for a link while something is put into it",
    "swap a folder for a link while a snapshot is taken",
    "claim a file of a tebibyte",
    "put a pipe in the reader's way",
    "write to the image through a hard link",
    "write through a mount",
    "make a hundred thousand files",
    "make four thousand folders in each other",
    "choose names that break readers",
    "leave daemons behind",
    "hold on to pipes and terminals",
)
_SWAP = """
import ctypes, os
os.makedirs("/tmp/place", exist_ok=True)
os.symlink("/", "/tmp/other")
libc = ctypes.CDLL(None)
open("/tmp/swapping", "w").close()
while True:
    libc.syscall(316, -100, b"/tmp/place", -100, b"/tmp/other", 2)
"""
_MANY = """
import os
for i in range(100):
    os.mkdir(f"/tmp/many{i}")
    for j in range(1000):
        os.close(os.open(f"/tmp/many{i}/{j}", os.O_CREAT | os.O_WRONLY))
"""
_DEEP = """
import os
os.chdir("/tmp")
for _ in range(4096):
    os.mkdir("d")
    os.chdir("d")
open("bottom", "w").close()
"""
_NAMES = """
import os
os.mkdir("/tmp/names")
for name in (b"\\xff\\xfe", b"a\\nb", b"\\x1b[31m", b"x" * 255, b"-rf", b"*", b"...", b" ", b".wh.x", b"a\\\\b", "ä".encode(), b"\\r"):
    os.close(os.open(b"/tmp/names/" + name, os.O_CREAT | os.O_WRONLY))
"""
_DAEMON = """
import os, signal, sys
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
os.closerange(0, 100)
os.execvp("sleep", ["sleep", sys.argv[1]])
"""


@contextmanager
def swapping(bench: Bench) -> Iterator[Box]:
    """A box in which /tmp/place is a folder and a link to / by turns, as fast as it can."""
    with bench.box() as box:
        background(box, "python3", "-c", _SWAP)
        assert eventually(lambda: exists(box, "/tmp/swapping"), 30)
        yield box


def again(act: Callable[[], object], seconds: float = 3) -> int:
    """How often it could be done; what is not there just now, or refused, is no matter."""
    end, done = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with suppress(FileNotFoundError, RuntimeFault):
            act()
        done += 1
    return done


@attack("swap a folder for a link while it is got")
def test_get_never_leads_to_the_host(bench: Bench):
    (bench.scratch / "secret").write_text("of the host")
    seen = []

    def get() -> None:
        seen.append(b"".join(box.get(f"/tmp/place{bench.scratch}/secret")))

    with swapping(bench) as box:
        assert again(get) > 1
    assert not any(b"of the host" in content for content in seen)


@attack("swap a folder for a link while something is put into it")
def test_put_never_leads_to_the_host(bench: Bench):
    archive = make_tar([Entry(name="arrived", content=b"x")])
    folder = f"/tmp/place{bench.scratch}"
    with swapping(bench) as box:
        assert again(lambda: box.put(archive, folder)) > 1
    assert list(bench.scratch.iterdir()) == []


@attack("swap a folder for a link while a snapshot is taken")
def test_a_snapshot_holds_nothing_of_the_host(bench: Bench):
    place = bench.scratch / "host"
    place.mkdir()
    (place / "secret").write_text("of the host")
    tar = bench.scratch / "tar"
    with swapping(bench) as box:
        assert again(lambda: box.snapshot(tar)) > 0
        assert again(box.changes) > 0
    assert b"of the host" not in tar.read_bytes()


@attack("claim a file of a tebibyte")
def test_a_file_with_holes_does_not_fill_our_disk(bench: Bench):
    script = "import os; os.truncate(os.open('/tmp/sparse', os.O_CREAT | os.O_WRONLY), 1 << 40)"
    tar = bench.scratch / "tar"
    with bench.limited(disk_mib=64, file_mib=2 << 20) as box:
        python(box, script)
        began = time.monotonic()
        with suppress(RuntimeFault):
            box.snapshot(tar)
        taken = next(iter(box.get("/tmp/sparse")))
        assert time.monotonic() - began < 30
        assert len(taken) < 64 << 20
    assert not tar.exists() or tar.stat().st_blocks * 512 < 256 << 20


@attack("put a pipe in the reader's way")
def test_pipes_do_not_block_who_reads(bench: Bench):
    with bench.box() as box:
        sh(box, "mkdir /tmp/way; mkfifo /tmp/way/pipe; echo x > /tmp/way/file")
        began = time.monotonic()
        assert sorted(read_tar(box.get("/tmp/way"))) == ["way", "way/file"]
        with suppress(FileNotFoundError, RuntimeFault):
            assert not any("pipe" in name for name in read_tar(box.get("/tmp/way/pipe")))
        box.snapshot(bench.scratch / "tar")
        box.put(make_tar([Entry(name="pipe", content=b"file")]), "/tmp/way")
        assert time.monotonic() - began < 30
        assert said(box, "cat", "/tmp/way/pipe") == "file"


@attack("write to the image through a hard link")
def test_hard_links_do_not_lead_into_the_image(bench: Bench):
    before = {
        p: p.read_bytes() for e in bench.image.layers if (p := e.folder / "etc/passwd").exists()
    }
    with bench.box() as box:
        sh(box, "ln /etc/passwd /etc/also; echo mine >> /etc/also; chmod 777 /etc/also")
    assert before
    assert {p: p.read_bytes() for p in before} == before
    with bench.box() as box:
        assert "mine" not in said(box, "cat", "/etc/passwd")


@attack("write through a mount")
def test_mounts_cannot_be_written_to(bench: Bench):
    shared = bench.scratch / "shared"
    shared.mkdir()
    (shared / "file").write_text("kept")
    script = """
exec 3< /m/file
echo x > /proc/self/fd/3; : > /m/file; truncate -s 0 /m/file; chmod 777 /m/file; chown 1:1 /m/file
mv /m/file /m/other; rm -f /m/file; ln /m/file /m/more; mkdir /m/folder; touch -d @1 /m/file
python3 -c 'import os; os.open("/m/file", os.O_RDWR)'; true
"""
    before = (shared / "file").stat()
    with bench.box(mounts=(Mount(source=shared, target="/m"),)) as box:
        assert said(box, "cat", "/m/file") == "kept"
        run(box, "sh", "-c", script)
    found = (shared / "file").stat()
    assert (found.st_mode, found.st_uid, found.st_mtime, found.st_size) == (
        before.st_mode, before.st_uid, before.st_mtime, 4,
    )  # fmt: skip
    assert [p.name for p in shared.iterdir()] == ["file"]


@attack("make a hundred thousand files")
def test_many_files_take_a_bounded_time(bench: Bench):
    with bench.limited(disk_mib=2048, memory_mib=256) as box:
        python(box, _MANY, seconds=120)
        began = time.monotonic()
        assert len(box.changes()) >= 100_000
        assert len(read_tar(box.get("/tmp/many7"))) == 1001
    assert time.monotonic() - began < 60


@attack("make four thousand folders in each other")
def test_deep_folders_can_be_listed_and_removed(bench: Bench):
    with bench.box() as box:
        python(box, _DEEP)
        began = time.monotonic()
        assert len([c for c in box.changes() if c.path.startswith("/tmp/d")]) == 4097
        with suppress(RuntimeFault):
            assert len(read_tar(box.get("/tmp/d"))) == 4097
    assert time.monotonic() - began < 60
    with refused("what is in a box that is gone", RuntimeFault):
        list(box.get("/tmp/d"))


@attack("choose names that break readers")
def test_names_are_told_as_they_are(bench: Bench):
    with bench.box() as box:
        python(box, _NAMES)
        found = {
            c.path.rpartition("/")[2] for c in box.changes() if c.path.startswith("/tmp/names/")
        }
        got = {name.rpartition("/")[2] for name in read_tar(box.get("/tmp/names"))} - {"names"}
    wanted = {
        "\udcff\udcfe",
        "a\nb",
        "\x1b[31m",
        "x" * 255,
        "-rf",
        "*",
        "...",
        " ",
        ".wh.x",
        "a\\b",
        "ä",
        "\r",
    }
    assert found == wanted
    assert got == wanted


@attack("leave daemons behind")
def test_no_daemon_outlives_its_box(bench: Bench):
    marker = f"4242.{time.time_ns()}"
    with bench.box() as box:
        for _ in range(5):
            run(box, "python3", "-c", _DAEMON, marker)
        see(marker)
    assert not alive(marker)


@attack("hold on to pipes and terminals")
def test_what_holds_on_to_pipes_does_not_hold_up_the_end(bench: Bench):
    marker = f"4242.{time.time_ns()}"
    with bench.box() as box:
        pty = box.open_pty(
            [
                "sh",
                "-c",
                f"trap '' HUP TERM; (trap '' HUP; setsid sleep {marker} &); sleep {marker}",
            ]
        )
        run(box, "sh", "-c", f"trap '' HUP TERM; setsid sleep {marker} & exit 0")
        see(marker)
        began = time.monotonic()
    assert time.monotonic() - began < 20
    assert not alive(marker)
    pty.close()
