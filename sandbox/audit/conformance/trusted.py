"""What `exec(trusted=True)` promises: it works, and is its own, whatever ran in the box before."""

from sandbox.audit.conformance.bench import (
    Bench,
    background,
    eventually,
    expect,
    hold,
    python,
    run,
    said,
    sh,
)
from sandbox.audit.conformance.registry import Group
from sandbox.runtime.base import Box

GROUP = Group("trusted exec")
_FULL = """
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
            os._exit(0)
    except OSError:
        open("/tmp/full", "w").close()
        time.sleep(1000)
"""
_LIMITS = """
import resource
for name in ("NOFILE", "NPROC", "AS", "DATA", "STACK", "FSIZE", "CPU"):
    for pid in (1, 0):
        try:
            resource.prlimit(pid, getattr(resource, "RLIMIT_" + name), (0, 0))
        except (OSError, ValueError):
            pass
"""
_OPEN = """
import os, time
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    os.close(held.pop())
    open("/tmp/open", "w").close()
    time.sleep(1000)
"""
_SIGNALS = """
import os
for _ in range(200):
    for number in range(1, 65):
        try:
            os.kill(1, number)
        except OSError:
            pass
"""


@GROUP.check()
def a_trusted_program_is_like_any_other(bench: Bench) -> None:
    """Output, exit code, input, environment, directory, user: all as without `trusted`."""
    with bench.box() as box:
        script = 'cat; echo "$TASK $EXTRA"; pwd; id -u; echo err >&2; exit 7'
        options = {"input": b"typed\n", "env": {"EXTRA": "x"}, "cwd": "/tmp", "trusted": True}
        result = run(box, "sh", "-c", script, **options)
        found = (result.exit_code, result.stdout, result.stderr)
        expect(found, (7, b"typed\none two x\n/tmp\n0\n", b"err\n"), "exit code, output, errors")
        user = sh(box, "id -u; id -g", user="1234:2345", cwd="/", trusted=True)
        expect(user, "1234\n2345\n", "another user")
        expect(run(box, "sh", "-c", "kill -KILL $$", trusted=True).exit_code, 137, "a signal")
        long = run(box, "head", "-c", "5000", "/dev/zero", trusted=True, output_bytes=1000)
        expect((len(long.stdout), long.truncated), (1000, True), "bounded output")


@GROUP.check()
def a_trusted_program_has_the_same_confinement(bench: Bench) -> None:
    """From outside does not mean with the rights of outside."""
    script = "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Gid|Groups)' /proc/self/status; readlink /proc/self/root; umask; ulimit -a; for n in mnt pid net ipc uts cgroup user; do readlink /proc/self/ns/$n; done"
    with bench.box() as box:
        expect(sh(box, script, trusted=True), sh(box, script), "rights, namespaces and limits")


@GROUP.check()
def when_a_trusted_program_s_time_is_up_everything_is_killed(bench: Bench) -> None:
    """`seconds` holds for it too."""
    with bench.box() as box:
        result = run(box, "sh", "-c", "echo begun; sleep 1000", seconds=2, trusted=True)
    expect((result.exit_code, result.stdout), (None, b"begun\n"), "exit code, output")


@GROUP.check("pids")
def a_trusted_program_starts_in_a_box_that_is_full_of_processes(bench: Bench) -> None:
    """The process limit of hostile programs does not hold back who looks at them."""
    with bench.limited(pids=32) as box:
        background(box, "python3", "-c", _FULL)
        _wait(box, "/tmp/full")
        expect(said(box, "echo", "fine", trusted=True), "fine\n", "a trusted program")


@GROUP.check()
def a_trusted_program_starts_after_the_first_process_was_limited(bench: Bench) -> None:
    """Programs that lower the limits of process 1, and their own, do so for themselves."""
    with bench.box() as box:
        run(box, "python3", "-c", _LIMITS)
        expect(python(box, "print(42)", trusted=True), "42", "a trusted program")


@GROUP.check()
def a_trusted_program_starts_while_descriptors_are_used_up(bench: Bench) -> None:
    """As many open files as a process may have, in several processes."""
    with bench.box() as box:
        for _ in range(3):
            background(box, "python3", "-c", _OPEN)
        _wait(box, "/tmp/open")
        expect(python(box, "print(42)", trusted=True), "42", "a trusted program")


@GROUP.check()
def a_trusted_program_starts_after_a_storm_of_signals(bench: Bench) -> None:
    """Whatever process 1 was sent from inside."""
    with bench.box() as box:
        run(box, "python3", "-c", _SIGNALS)
        expect(said(box, "echo", "fine", trusted=True), "fine\n", "a trusted program")


@GROUP.check()
def a_trusted_program_outlives_what_kills_everything(bench: Bench) -> None:
    """`kill -9 -1` in a loop: what is trusted may be killed, the way in may not."""
    with bench.box() as box:
        run(box, "sh", "-c", "kill -KILL -1")
        expect(said(box, "echo", "fine", trusted=True), "fine\n", "a trusted program")


def _wait(box: Box, path: str) -> None:
    """Until the hostile program says with a file that it is done; looked for without a process."""

    def there() -> bool:
        try:
            return bool(list(box.get(path)))
        except FileNotFoundError:
            return False

    hold(eventually(there, 30), f"the hostile program gets to make {path}")
