"""The supervisor as process 1: of a namespace of its own, and within a Python (the library)."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.runtime.freeze.build import Programs, lacks, programs
from sandbox.runtime.store import Store

NANO = 10**9
AT = 1709208000
SLACK = 60
NAMESPACE = ["unshare", "--map-root-user", "--pid", "--net", "--fork", "--kill-child"]
NAMESPACE += ["--mount-proc"]


def cannot() -> str:
    if why := lacks():
        return why
    if not shutil.which("unshare"):
        return "no unshare(1)"
    tried = subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "no namespaces here"


pytestmark = pytest.mark.skipif(bool(cannot()), reason=cannot() or "they can be had")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    store = os.environ.get("STILLROOM_STORE") or tmp_path_factory.getbasetemp().parent / "freeze"
    return programs(Store(Path(store)))


def in_box(built: Programs, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    box = [*NAMESPACE, str(built.still), "init", "--at", str(AT * NANO), *options, "--"]
    return subprocess.run(
        [*box, "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": os.environ["PATH"], "STILL": str(built.still)},
    )


def settles_at(most: int) -> str:
    """Shell that says how many processes there are: process 1 reaps when it gets to run."""
    count = "n=$(ls /proc | grep -c '^[0-9]')"
    return f"i=0; while {count}; [ $n -gt {most} ] && [ $((i += 1)) -lt 200 ]; do sleep 0.05; done; echo $n"


def test_the_program_is_process_2_and_frozen(built: Programs) -> None:
    said = in_box(built, "echo $$; date +%s; exit 5")
    number, at = said.stdout.split()
    assert (number, said.returncode) == ("2", 5)
    assert AT <= int(at) <= AT + SLACK


def test_orphans_are_reaped(built: Programs) -> None:
    script = "for i in 1 2 3 4 5; do (sleep 0 & ); done; " + settles_at(5)
    assert int(in_box(built, script).stdout) <= 5  # still, sh, a subshell, ls, grep


def test_nobody_in_the_box_ends_or_slows_the_guarded_process(built: Programs) -> None:
    attacks = [
        "kill -9 2",
        "kill -9 -2",
        "kill -STOP 2",
        "renice 5 2",
        "prlimit --pid 2 --nofile=3",
        "taskset -p 1 2",
        "chrt -o -p 0 2",
    ]
    script = "sh -c '" + "; ".join(f"{a} >&2 || echo refused" for a in attacks) + "'; echo alive"
    said = in_box(built, script, "--guard")
    assert said.stdout.split() == ["refused"] * len(attacks) + ["alive"]


def test_a_signal_to_everybody_spares_the_guarded_process(built: Programs) -> None:
    script = "(sleep 50 & sleep 50 & exec /bin/kill -9 -1); wait; echo alive; " + settles_at(5)
    said = in_box(built, script, "--guard")
    assert said.stdout.split()[0] == "alive"
    assert int(said.stdout.split()[1]) <= 5


def test_no_descriptor_sends_the_guarded_process_a_signal(built: Programs) -> None:
    code = (
        "import fcntl, os, struct\nr, w = os.pipe()\n"
        "def refused(f, *a):\n    try: f(*a)\n    except PermissionError: return True\n"
        "print(refused(fcntl.fcntl, r, fcntl.F_SETOWN, 2), refused(os.pidfd_open, 2),"
        " refused(fcntl.ioctl, r, 0x8901, struct.pack('i', 2)),"
        " refused(__import__('signal').pidfd_send_signal, os.open('/proc/2', 0), 9),"
        " refused(fcntl.fcntl, r, fcntl.F_SETOWN, os.getpid()))"
    )
    said = in_box(built, f'{sys.executable} -I -c "{code}"; true', "--guard")
    assert said.stdout.split() == ["True"] * 4 + ["None"], said.stderr


def test_a_program_from_outside_joins_and_is_frozen(built: Programs) -> None:
    """From the box's namespaces, not from its processes: those have a supervisor already."""
    script = 'date +%s; kill -9 2 || echo refused; "$0" join -- true; echo $?'
    said = joined(built, ["sh", "-c", "echo up; read end"], script)
    at, refused, again = said.stdout.split()
    assert AT <= int(at) <= AT + SLACK
    assert (refused, again) == ("refused", "125")


KNOCK = """
import socket, threading
def knock():
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.connect("\\0stillroom")
            while door.recv(4096): pass
for _ in range(48): threading.Thread(target=knock, daemon=True).start()
print("up", flush=True)
input()
"""


def test_the_boxs_programs_do_not_keep_the_door_busy(built: Programs) -> None:
    began = time.monotonic()
    said = joined(built, [sys.executable, "-I", "-c", KNOCK], "date +%s", times=4)
    assert [AT <= int(s) <= AT + SLACK for s in said.stdout.split()] == [True] * 4
    assert time.monotonic() - began < 6, "they waited for the knockers' patience to end"


def joined(
    built: Programs, inside: list[str], script: str, times: int = 1
) -> subprocess.CompletedProcess[str]:
    """What `script` says that has come from outside into a box where `inside` runs and says "up"."""
    box = [*NAMESPACE, str(built.still), "init", "--at", str(AT * NANO), "--guard", "--"]
    with subprocess.Popen(
        [*box, *inside], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin
        assert running.stdout
        assert running.stdout.readline() == "up\n"
        process = str(descendant(running.pid, 2))
        enter = ["nsenter", "--target", process, "--user", "--pid", "--net", "--mount"]
        once = [*enter, str(built.still), "join", "--", "sh", "-c", script, str(built.still)]
        again = ["sh", "-c", f'for i in {"x " * times}; do "$@"; done', "sh", *once]
        said = subprocess.run(again, capture_output=True, text=True, timeout=60, check=False)
        running.stdin.close()
    return said


def descendant(pid: int, generations: int) -> int:
    for _ in range(generations):
        pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    return pid


LIBRARY = """
import ctypes, json, os, subprocess, sys, time
still = ctypes.CDLL(sys.argv[1])
begun = still.still_begin(sys.argv[2].encode())
def said(*words): return subprocess.run(words, stdout=-1, env={}).stdout.decode().strip()
seen = [said("/bin/date", "+%s"), said("/bin/sh", "-c", "echo > f; /usr/bin/stat -c %Y f")]
print(json.dumps([begun, seen, still.still_begin(b"at=1"), time.time() > 1.75e9]))
"""


def test_a_library_freezes_what_its_caller_starts(built: Programs, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(*NAMESPACE, sys.executable, "-I", "-c", LIBRARY, str(built.library)),
            f"at={AT * NANO} mode=ticking aslr=0 seed=3",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    begun, seen, again, not_itself = json.loads(done.stdout)
    assert (begun, again, not_itself) == (0, -114, True)
    assert all(AT <= int(s) <= AT + SLACK for s in seen)


def test_a_library_says_what_is_wrong_with_its_options(built: Programs) -> None:
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).still_begin(sys.argv[2].encode()))"
    for options in ("", "at=x", "at=1 mode=slow", "at=1 what=2"):
        asked = [sys.executable, "-I", "-c", code, str(built.library), options]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        assert (options, done.stdout) == (options, "-22\n")


def test_process_1_does_not_begin_with_another_namespaces_processes(built: Programs) -> None:
    """It would rewrite those, by numbers that are not theirs."""
    box = [w for w in NAMESPACE if w != "--mount-proc"]
    init = [*box, str(built.still), "init", "--at", "1", "--", "true"]
    done = subprocess.run(init, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "/proc is not mounted" in done.stderr) == (125, True)
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).still_begin(b'at=1'))"
    begin = [*box, sys.executable, "-I", "-c", code, str(built.library)]
    done = subprocess.run(begin, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "-19\n"
