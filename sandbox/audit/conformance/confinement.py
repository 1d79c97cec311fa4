"""What a box cannot reach: the network, the host, other boxes."""

import os
from dataclasses import replace

from sandbox.audit.conformance.bench import (
    Bench,
    background,
    eventually,
    exists,
    expect,
    hold,
    python,
    refused,
    run,
    said,
    sh,
    sleeper,
)
from sandbox.audit.conformance.registry import Group
from sandbox.errors import RuntimeFault
from sandbox.runtime.spec import Mount

GROUP = Group("isolation")
_CONNECT = """
import errno, socket, sys, time
began = time.monotonic()
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
except OSError as e:
    print(errno.errorcode[e.errno], time.monotonic() - began < 5)
else:
    print("connected")
"""
_SERVE = """
import socket
server = socket.create_server(("127.0.0.1", 4242))
open("/tmp/listening", "w").close()
while True:
    server.accept()[0].sendall(b"hello")
"""
_MOUNT = (
    "import ctypes; libc = ctypes.CDLL(None, use_errno=True);"
    ' done = libc.mount(b"none", b"/tmp", b"tmpfs", 0, None);'
    ' raise SystemExit(f"Permission denied {ctypes.get_errno()}" if done else 0)'
)
"""Not every image has the program of that name."""
_FORBIDDEN = (
    f"python3 -c '{_MOUNT}'",
    "mknod /tmp/disk b 8 0",
    "unshare --user true",
    "unshare --mount true",
    "echo x > /proc/sys/kernel/core_pattern",
    "echo b > /proc/sysrq-trigger",
    "echo x > /sys/kernel/mm/ksm/run",
)


@GROUP.check()
def loopback_is_the_only_network_interface(bench: Bench) -> None:
    """`create`: without a network but its own loopback, which is up."""
    with bench.box() as box:
        table = said(box, "cat", "/proc/net/dev").splitlines()[2:]
        expect([line.partition(":")[0].strip() for line in table], ["lo"], "interfaces")
        expect(python(box, _CONNECT, "127.0.0.1", "9"), "ECONNREFUSED True", "connecting to itself")


@GROUP.check()
def other_hosts_are_out_of_reach_at_once(bench: Bench) -> None:
    """No waiting for an answer that cannot come: 192.0.2.1 is nobody's."""
    with bench.box() as box:
        found = python(box, _CONNECT, "192.0.2.1", "80")
    hold(found in {"ENETUNREACH True", "ECONNREFUSED True"}, f"there is no way there: {found}")


@GROUP.check()
def a_server_in_one_box_is_not_seen_from_another(bench: Bench) -> None:
    """Each loopback is a box's own; low ports too are open to its root."""
    with bench.box() as one, bench.box() as two:
        background(one, "python3", "-c", _SERVE)
        there = eventually(lambda: exists(one, "/tmp/listening"), 30)
        hold(there, "a server starts")
        expect(python(two, _CONNECT, "127.0.0.1", "4242"), "ECONNREFUSED True", "from another box")
        expect(python(one, _CONNECT, "127.0.0.1", "4242"), "connected", "from its own box")
        python(one, "import socket; socket.create_server(('127.0.0.1', 80))")


@GROUP.check()
def boxes_do_not_see_each_other_s_files_or_processes(bench: Bench) -> None:
    """Nor their shared memory."""
    with bench.box() as one, bench.box() as two:
        marker = sleeper(one)
        sh(one, "echo x > /tmp/mine; echo x > /dev/shm/mine")
        seen = sh(two, "ls /tmp /dev/shm; cat /proc/[0-9]*/cmdline || true")
    hold("mine" not in seen, "no file of the other box")
    hold(marker not in seen, "no process of the other box")


@GROUP.check()
def nothing_of_the_host_s_file_system_is_visible(bench: Bench) -> None:
    """But the mounts of the spec."""
    (bench.scratch / "host-only").write_text("host")
    with bench.box() as box:
        hold(run(box, "ls", str(bench.scratch)).exit_code != 0, "a folder of the host is not there")
        root = set(said(box, "ls", "-A", "/").split())
        mounts = said(box, "cat", "/proc/self/mountinfo")
    image = {path.name for layer in bench.image.layers for path in layer.folder.iterdir()}
    expect(
        root - image - {"dev", "proc", "sys", "root", "tmp", ".dockerenv"},
        set(),
        "in / and not the image's",
    )
    hold(str(bench.scratch) not in mounts, "the host's paths are not told")


@GROUP.check()
def the_host_s_environment_and_processes_are_not_visible(bench: Bench) -> None:
    """/proc is the box's own."""
    os.environ["STILLROOM_CONFORMANCE"] = "4242-secret"
    try:
        with bench.another() as runtime, runtime.create(bench.spec) as box:
            seen = sh(box, "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline || true")
            numbers = said(box, "ls", "/proc").split()
    finally:
        del os.environ["STILLROOM_CONFORMANCE"]
    hold("4242-secret" not in seen, "nothing of the host's environment is seen")
    hold(len([n for n in numbers if n.isdigit()]) < 10, f"a few processes are seen: {numbers}")


@GROUP.check()
def what_needs_the_machine_s_root_is_forbidden(bench: Bench) -> None:
    """Root in a box is not root: see the attack suite for much more of it."""
    with bench.box() as box:
        for command in _FORBIDDEN:
            result = run(box, "sh", "-c", command)
            hold(result.exit_code not in {0, 127}, f"`{command}` is refused: {result}")


@GROUP.check()
def mounts_are_seen_and_never_written_to(bench: Bench) -> None:
    """`BoxSpec.mounts`: a folder and a file, read-only, and no part of the changes."""
    folder = bench.scratch / "shared"
    folder.mkdir()
    (folder / "file").write_text("shared\n")
    (bench.scratch / "single").write_text("single\n")
    mounts = (
        Mount(source=folder, target="/mnt/shared"),
        Mount(source=bench.scratch / "single", target="/etc/single"),
    )
    attempts = "echo x >> /mnt/shared/file; echo x > /mnt/shared/new; rm /mnt/shared/file; chmod 777 /mnt/shared/file; mv /mnt/shared/file /mnt/shared/f; touch /mnt/shared/file; ln /mnt/shared/file /mnt/shared/l; echo x > /etc/single; rm -f /etc/single; chmod 600 /etc/single"
    with bench.box(mounts=mounts) as box:
        expect(said(box, "cat", "/mnt/shared/file", "/etc/single"), "shared\nsingle\n", "contents")
        for attempt in attempts.split("; "):
            hold(run(box, "sh", "-c", attempt).exit_code != 0, f"`{attempt}` is refused")
        found = said(box, "cat", "/mnt/shared/file", "/etc/single")
        expect(found, "shared\nsingle\n", "contents after it")
        paths = [c.path for c in box.changes() if "/mnt/shared/" in c.path]
        expect(paths, [], "changes below the mount")
    expect(sorted(p.name for p in folder.iterdir()), ["file"], "the folder on the host")
    expect((folder / "file").read_text(), "shared\n", "the file on the host")


@GROUP.check()
def a_mount_of_what_is_not_there_is_a_fault(bench: Bench) -> None:
    """Nothing is made on the host for it."""
    missing = bench.scratch / "missing"
    with refused("a box with it", RuntimeFault):
        bench.box(mounts=(Mount(source=missing, target="/mnt"),)).destroy()
    hold(not missing.exists(), "it was not made on the host")


@GROUP.check()
def a_mount_s_place_is_inside_the_box(bench: Bench) -> None:
    """A target that leads elsewhere is refused, or resolved inside the box's root."""
    (bench.scratch / "shared").mkdir()
    for target in ("relative", "/../../etc", ""):
        spec = replace(bench.spec, mounts=(Mount(source=bench.scratch / "shared", target=target),))
        try:
            bench.runtime.create(spec).destroy()
        except RuntimeFault:
            continue
    expect(os.path.ismount("/etc"), False, "the host's /etc is a mount")
