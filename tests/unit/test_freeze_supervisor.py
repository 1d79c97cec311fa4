"""The supervisor on this machine, without a box: whatever a program asks, it sees the frozen time."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.runtime.freeze.build import Programs, lacks, programs
from sandbox.runtime.store import Store

NANO = 10**9
AT = 1709208000  # 2024-02-29 12:00 UTC
SLACK = 60  # this machine may be busy
CPYTHON = f"{sys.base_prefix}/bin/python{sysconfig.get_python_version()}"

pytestmark = pytest.mark.skipif(bool(lacks()), reason=lacks() or "the kernel can")
Still = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    store = os.environ.get("STILLROOM_STORE") or tmp_path_factory.getbasetemp().parent / "freeze"
    return programs(Store(Path(store)))


@pytest.fixture
def still(built: Programs, tmp_path: Path) -> Still:
    def run(
        *words: str, mode: str = "ticking", verb: str = "run", options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        command = [str(built.still), verb]
        if verb == "run":
            command += ["--at", str(AT * NANO), "--mode", mode, *options]
        return subprocess.run(
            [*command, "--", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def python(still: Still, code: str, mode: str = "ticking") -> object:
    done = still(CPYTHON, "-I", "-c", f"import json, os, time\n{code}", mode=mode)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("mode", ["ticking", "fixed", "step"])
def test_a_program_sees_the_frozen_time(still: Still, mode: str) -> None:
    seen = still("date", "+%s", mode=mode)
    assert AT <= int(seen.stdout) <= AT + SLACK


def test_a_program_without_an_environment_sees_it_too(still: Still) -> None:
    assert AT <= int(still("env", "-i", "/bin/date", "+%s").stdout) <= AT + SLACK


def test_a_fixed_clock_does_not_move(still: Still) -> None:
    assert (
        python(still, "print(json.dumps([time.time_ns() for _ in range(3)]))", "fixed")
        == [AT * NANO] * 3
    )


def test_a_stepping_clock_moves_at_each_look(still: Still) -> None:
    code = "a = time.time_ns(); b = time.time_ns(); print(b - a)"
    assert python(still, code, "step") == 1000


@pytest.mark.parametrize("mode", ["ticking", "fixed", "step"])
def test_a_static_program_sees_nothing_else(still: Still, built: Programs, mode: str) -> None:
    asked = ["unshare", "-n"] if os.geteuid() == 0 and shutil.which("unshare") else []
    done = still(*asked, str(built.still), "probe", "0", "0", mode, mode=mode)
    seen = json.loads(done.stdout)
    clocks = [n for n in seen if n.removeprefix("raw_") in CLOCKS] + ["child", "after_mtime"]
    assert [n for n in clocks if not AT * NANO <= seen[n] <= (AT + SLACK) * NANO] == []
    assert {n: seen[n] for n in ("clock_settime", "settimeofday", "adjtimex")} == {
        "clock_settime": 1,
        "settimeofday": 1,
        "adjtimex": 1,
    }
    assert seen["sleep_ms"] >= 50
    assert 55 <= seen["wait_ms"] < 5000
    assert (AT - 5) * NANO <= seen["mtime"] <= seen["after_mtime"]
    assert seen["utimes"] == NANO**2
    assert (seen["vsock"], seen["alg"], seen["seccomp_filters"] >= 1) == (97, 97, True)


CLOCKS = {"clock_gettime", "gettimeofday", "time", "coarse", "tai"}


@pytest.mark.parametrize("mode", ["ticking", "fixed", "step"])
def test_a_wait_until_an_instant_takes_its_time(still: Still, mode: str) -> None:
    code = (
        "from multiprocessing import Semaphore\nfrom threading import Lock\nl = Lock(); l.acquire()\n"
        "def timed(f):\n    t = time.monotonic(); f(timeout=0.15); return time.monotonic() - t\n"
        "print(json.dumps([timed(lambda timeout: Semaphore(0).acquire(timeout=timeout)),"
        " timed(lambda timeout: l.acquire(timeout=timeout))]))"
    )
    waits = python(still, code, mode)
    assert isinstance(waits, list)
    assert all(0.14 < w < 5 for w in waits)


@pytest.mark.parametrize("mode", ["ticking", "fixed", "step"])
def test_every_way_to_look_at_a_file_says_the_same_at_first_and_later(
    still: Still, mode: str
) -> None:
    code = (
        "f = os.open('fresh', os.O_CREAT | os.O_RDWR); os.write(f, b'x'); d = os.open('.', 0)\n"
        "ways = [lambda: os.stat('fresh'), lambda: os.stat(os.path.abspath('fresh')),"
        " lambda: os.lstat('fresh'), lambda: os.fstat(f), lambda: os.stat('fresh', dir_fd=d)]\n"
        "seen = {(s.st_mtime_ns, s.st_ctime_ns, s.st_size, s.st_ino) for _ in range(40)"
        " for s in [w() for w in ways]}\n"
        "print(json.dumps([sorted(seen), os.stat('/').st_ino]))"
    )
    seen = python(still, code, mode)
    assert isinstance(seen, list)
    [[mtime, ctime, size, _]], root = seen
    assert (AT - 5) * NANO <= mtime <= (AT + SLACK) * NANO
    assert (mtime, size, root) == (ctime, 1, Path("/").stat().st_ino)


def test_what_a_file_was_given_it_keeps(still: Still, tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", (1, 10**9))
    code = "os.close(os.open('new', os.O_CREAT)); os.utime('new', (5, 2 * 10**9))\n"
    code += "print(json.dumps([os.stat(n).st_mtime for n in ['old', 'new'] for _ in range(20)]))"
    assert python(still, code) == [10.0**9] * 20 + [2 * 10.0**9] * 20


def test_what_cannot_be_looked_at_fails_as_it_does_outside(still: Still) -> None:
    code = (
        "def error(f, *a):\n    try: f(*a)\n    except OSError as e: return e.errno\n"
        "asked = ['gone', '/gone/x', '/etc/passwd/x', '', 'x' * 300, '/proc/self/fd/99', '/dev/fd/99']\n"
        "print(json.dumps([[error(os.stat, n) for n in asked], error(os.fstat, 99)]))"
    )
    inside = python(still, code)
    plain = [CPYTHON, "-I", "-c", f"import json, os\n{code}"]
    outside = subprocess.run(plain, capture_output=True, text=True, check=True, cwd="/")
    assert inside == json.loads(outside.stdout)


def test_a_program_means_its_own_by_the_names_of_its_descriptors(still: Still) -> None:
    code = (
        "r, w = os.pipe(); os.dup2(r, 0)\n"
        "names = ['/dev/stdin', '/dev/fd/0', '/proc/self/fd/0', '//proc/self/fd/0',"
        " '/proc/thread-self/fd/0']\n"
        "print(json.dumps(len({os.stat(n).st_ino for n in names} | {os.fstat(r).st_ino})))"
    )
    assert python(still, code) == 1


def test_two_hundred_programs_at_once_see_it(still: Still) -> None:
    loop = "for i in $(seq 200); do (date +%s; test -e /gone; sleep 0.1; date +%s) & done; wait"
    seen = still("sh", "-c", loop).stdout.split()
    assert len(seen) == 400
    assert all(AT <= int(s) <= AT + SLACK for s in seen)


def test_threads_that_look_and_start_programs_see_it(still: Still) -> None:
    code = (
        "import subprocess, threading\nseen = []\n"
        "def work():\n    for i in range(8):\n        os.stat('/'); seen.append(time.time())\n"
        "        seen.append(int(subprocess.run(['date', '+%s'], stdout=-1).stdout))\n"
        "threads = [threading.Thread(target=work) for _ in range(6)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(json.dumps([len(seen), min(seen), max(seen)]))"
    )
    seen = python(still, code)
    assert isinstance(seen, list)
    assert seen[0] == 96
    assert AT <= seen[1] <= seen[2] <= AT + SLACK


def test_the_status_is_the_programs(still: Still) -> None:
    ends = [still("sh", "-c", s).returncode for s in ("exit 7", "kill -9 $$", "true")]
    assert [*ends, still("/gone").returncode] == [7, 137, 0, 127]


def test_nobody_joins_where_no_supervisor_is(still: Still) -> None:
    done = still("date", verb="join")
    assert (done.returncode, done.stdout) == (125, "")
    assert "no supervisor" in done.stderr


@pytest.mark.parametrize("options", [("--mode", "slow"), ("--at", "x"), ("--what", "1"), ("--at",)])
def test_a_wrong_option_starts_nothing(still: Still, options: tuple[str, ...]) -> None:
    done = still("date", options=options)
    assert (done.returncode, done.stdout) == (125, "")
    assert "usage" in done.stderr


def test_without_its_supervisor_no_program_starts(still: Still) -> None:
    """Its process 1 would take the box along; here the children stay, and stay frozen."""
    code = (
        "import signal, subprocess\nif os.fork(): time.sleep(60)\n"
        "supervisor = int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])\n"
        "os.setsid(); os.kill(supervisor, signal.SIGKILL)\n"
        "while os.path.exists(f'/proc/{supervisor}/cmdline') and open(f'/proc/{supervisor}/cmdline').read(): pass\n"
        "try: out = subprocess.run(['date', '+%s'], stdout=-1, stderr=-1)\n"
        "except OSError as e: out = e\n"
        "os.write(1, json.dumps([time.time(), repr(getattr(out, 'stdout', b''))]).encode())"
    )
    done = still(CPYTHON, "-I", "-c", f"import json, os, time\n{code}")
    seen, date = json.loads(done.stdout)
    assert AT <= seen <= AT + SLACK
    assert date == "b''"


def test_the_same_seed_gives_the_same_chance(still: Still) -> None:
    asked = ["-c", "import os, uuid; print(os.urandom(8).hex(), uuid.uuid4(), hash('x'))"]
    said = [still(CPYTHON, *asked, options=("--seed", s)).stdout for s in ("7", "7", "8")]
    assert said[0] == said[1] != said[2]


@pytest.mark.parametrize("looks", [*range(10), 30, 31, 32, 33])
def test_a_program_starts_however_often_the_one_before_it_looked(still: Still, looks: int) -> None:
    """The loader's look at a fresh library is before the clock of the new program is frozen."""
    said = subprocess.run(["ldd", "/bin/ls"], capture_output=True, text=True, check=True).stdout
    libraries = " ".join(w for w in said.split() if w.startswith("/") and "/ld-" not in w)
    loop = f"cp {libraries} .; sh -c '{'test -e .; ' * looks} LD_LIBRARY_PATH=. exec ls'"
    assert still("sh", "-c", loop).returncode == 0


def test_a_program_that_hides_is_frozen_by_a_supervisor_without_rights(
    built: Programs, tmp_path: Path
) -> None:
    without = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"]
    code = (
        "import ctypes, json, os\nc = ctypes.CDLL(None)\nassert c.prctl(4, 0, 0, 0, 0) == 0\n"
        "os.close(os.open('new', os.O_CREAT))\nt = (ctypes.c_long * 2)()\n"
        "c.syscall(228, 0, t)\nprint(json.dumps([t[0], os.stat('new').st_mtime]))"
    )
    run = [str(built.still), "run", "--at", str(AT * NANO), "--", CPYTHON, "-I", "-c", code]
    done = subprocess.run(
        [*(without if os.geteuid() == 0 else []), *run],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert all(AT <= seen <= AT + SLACK for seen in json.loads(done.stdout))


def test_processes_with_the_same_command_draw_nothing_alike(still: Still) -> None:
    asked = "import os, sys; print(os.getrandom(48).hex())"
    loop = "for i in 1 2 3 4; do $0 -I -c '" + asked + "'; done"
    said = still("sh", "-c", loop, CPYTHON, options=("--seed", "7")).stdout.split()
    words = [line[i : i + 16] for line in said for i in range(0, 96, 16)]
    assert len(words) == len(set(words)) == 24


@pytest.mark.parametrize("mode", ["ticking", "fixed", "step"])
def test_what_only_the_kernel_dates_is_no_older_box_s_date(
    still: Still, tmp_path: Path, mode: str
) -> None:
    """An image's files were unpacked in what is the box's future; their own dates they keep."""
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", (10**9, 10**9))
    meant = (AT + 10**7) * NANO  # between the box's present and the machine's
    (tmp_path / "meant").touch()
    os.utime(tmp_path / "meant", ns=(meant, meant))
    since = ("--since", str(time.time_ns()))
    for code in (
        (
            "seen = [os.stat(n) for n in ['old'] * 40 + ['meant'] + ['/dev/null'] * 3]\n"
            "print(*[f'{s.st_mtime} {s.st_ctime}' for s in seen], sep='\\n')"
        ),
        (
            "import subprocess as s\n"
            "s.run(['stat', '-c', '%.9Y %.9Z %W'] + ['old'] * 40 + ['meant'] + ['/dev/null'] * 3)"
        ),
    ):
        asked = [CPYTHON, "-I", "-c", "import os\n" + code]
        lines = [
            [*map(float, w.split())]
            for w in still(*asked, mode=mode, options=since).stdout.splitlines()
        ]
        *old, kept = lines[:-3]
        assert {s[0] for s in old} == {10.0**9}
        assert kept[0] == meant / NANO
        assert [t for s in [*old, kept] for t in s[1:] if t and not AT - 5 <= t <= AT] == []
        assert [t for s in lines[-3:] for t in s if t and not AT - 5 <= t <= AT + SLACK] == []


def test_a_program_that_looks_often_does_so_by_itself(still: Still) -> None:
    code = (
        "def libc():\n"
        "    entries = iter(open('/proc/self/smaps'))\n"
        "    found = next(e.split() for e in entries if ' r-xp ' in e and '/libc.' in e)\n"
        "    dirty = next(int(e.split()[1]) for e in entries if e.startswith('Private_Dirty'))\n"
        "    return int(found[0].split('-')[1], 16), dirty\n"
        "end, before = libc(); m = open('/proc/self/mem', 'rb', 0); m.seek(end - 640)\n"
        "room = not any(m.read(640))\n"
        "[os.stat('/') for _ in range(200)]\nprint(json.dumps([room, before, libc()[1]]))"
    )
    seen = python(still, code)
    assert isinstance(seen, list)
    room, before, after = seen
    if not room and not before:
        pytest.skip("this machine's C library leaves no room for it")
    assert after
