"""What the wires beside a terminal promise: three pipes that are the program's own."""

import hashlib
import select
import time
from collections.abc import Callable
from contextlib import closing

from sandbox.audit.conformance.bench import Bench, eventually, expect, hold, sleeper
from sandbox.audit.conformance.registry import Group
from sandbox.audit.conformance.terminals import read_all, read_until, terminal
from sandbox.runtime.base import CONTROL, OUTPUT, STATUS, Pty, Wires

GROUP = Group("wires")
_SECONDS = 60.0
_MUCH = 20 << 20
_ASK = f"""read -r said <&{CONTROL}
printf 'out %s' "$said" >&{OUTPUT}
printf 'status %s' "$said" >&{STATUS}
printf 'tty %s' "$said"
read -r said <&{CONTROL}
"""
_MIRROR = f"""
import hashlib, os
seen = bytearray()
while len(seen) < {_MUCH}:
    seen += os.read({CONTROL}, 1 << 16)
os.write({STATUS}, hashlib.sha256(seen).hexdigest().encode())
view = memoryview(seen)
while view:
    view = view[os.write({OUTPUT}, view):]
os.read({CONTROL}, 1)
"""
_SHOUT = f"""
import os
for n in range(4000):
    os.write({OUTPUT}, b'%06d' % n)
    os.write({STATUS}, b'%06d' % n)
"""
_FDS = """
import os
def kind(n):
    try:
        return {os.O_RDONLY: 'r', os.O_WRONLY: 'w', os.O_RDWR: 'rw'}[flags(n) & os.O_ACCMODE]
    except OSError:
        return ''
def flags(n):
    import fcntl
    return fcntl.fcntl(n, fcntl.F_GETFL)
print({n: kind(n) for n in range(3, 1024) if kind(n)}, end='#')
"""


def wires_of(pty: Pty) -> Wires:
    found = pty.wires
    if found is None:
        raise AssertionError("there are wires, as they were asked for")
    return found


class Received:
    """What has come by two wires so far."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires
        self.output = self.status = b""
        self.ended = False

    def until(self, true: Callable[["Received"], bool], what: str) -> None:
        deadline = time.monotonic() + _SECONDS
        output, status = [self.output], [self.status]
        sizes = [len(self.output), len(self.status)]
        while not true(self):
            left = deadline - time.monotonic()
            hold(left > 0 and not self.ended, f"{what}; {sizes} bytes came, end: {self.ended}")
            select.select(self._wires.filenos(), [], [], left)
            try:
                parts = self._wires.receive()
            except EOFError:
                self.ended = True
                continue
            output.append(parts[0])
            status.append(parts[1])
            sizes = [sizes[0] + len(parts[0]), sizes[1] + len(parts[1])]
            self.output, self.status = b"".join(output), b"".join(status)
            output, status = [self.output], [self.status]


@GROUP.check()
def a_program_has_them_beside_its_terminal(bench: Bench) -> None:
    """CONTROL, OUTPUT, STATUS: nothing of one comes by another, or is changed."""
    with bench.box() as box, terminal(box, "bash", "-c", _ASK, wires=True) as pty:
        wires = wires_of(pty)
        expect(wires.receive(), (b"", b""), "what is received before anything was sent")
        hold(wires.send(b"this\n", _SECONDS), "it is taken")
        seen = Received(wires)
        seen.until(lambda s: (s.output, s.status) == (b"out this", b"status this"), "both answer")
        expect(read_until(pty, b"tty this"), b"tty this", "what is printed on the terminal")
        expect(wires.receive(), (b"", b""), "what is received when nothing more was sent")


@GROUP.check()
def they_are_the_three_descriptors_and_no_more(bench: Bench) -> None:
    """Reading the one, writing the others; without `wires` there are none."""
    wanted = str({CONTROL: "r", STATUS: "w", OUTPUT: "w"}).encode() + b"#"
    with bench.box() as box:
        with terminal(box, "python3", "-c", _FDS, wires=True) as pty:
            expect(read_until(pty, b"#"), wanted, "descriptors with wires")
        with terminal(box, "python3", "-c", _FDS) as pty:
            expect(read_until(pty, b"#"), b"{}#", "descriptors without wires")
            expect(pty.wires, None, "wires that were not asked for")


@GROUP.check()
def much_passes_both_ways(bench: Bench) -> None:
    """20 MiB of all bytes, in whatever steps they are taken."""
    data = hashlib.shake_256(b"much").digest(_MUCH)
    with bench.box() as box, terminal(box, "python3", "-c", _MIRROR, wires=True) as pty:
        wires, wanted = wires_of(pty), hashlib.sha256(data).hexdigest().encode()
        hold(wires.send(data, _SECONDS), "all of it is taken")
        parts, status, size = [], b"", 0
        deadline = time.monotonic() + _SECONDS
        while size < _MUCH:
            hold(time.monotonic() < deadline, f"all of it comes back in time, not only {size}")
            select.select(wires.filenos(), [], [], 1.0)
            output, more = wires.receive()
            hold(len(output) + len(more) <= 1 << 20, "what is received at once is bounded")
            parts.append(output)
            status, size = status + more, size + len(output)
        expect(status, wanted, "digest of what arrived")
        expect(hashlib.sha256(b"".join(parts)).hexdigest().encode(), wanted, "what came back")


@GROUP.check()
def many_short_writes_keep_their_order(bench: Bench) -> None:
    """Of each wire for itself."""
    wanted = b"".join(b"%06d" % n for n in range(4000))
    with bench.box() as box, terminal(box, "python3", "-c", _SHOUT, wires=True) as pty:
        seen = Received(wires_of(pty))
        seen.until(lambda s: len(s.output) == len(s.status) == len(wanted), "all of it comes")
        hold(seen.output == wanted and seen.status == wanted, "in the order it was written in")


@GROUP.check()
def what_a_quick_program_wrote_comes_before_the_end(bench: Bench) -> None:
    """`receive`: EOFError when neither will bring anything any more."""
    script = f"printf out >&{OUTPUT}; printf status >&{STATUS}; exit 3"
    with bench.box() as box:
        for _ in range(3):
            with terminal(box, "bash", "-c", script, wires=True) as pty:
                seen = Received(wires_of(pty))
                seen.until(lambda s: s.ended, "there is an end")
                expect((seen.output, seen.status), (b"out", b"status"), "what came before")
                expect(pty.wait(_SECONDS), 3, "exit code")
                expect(read_all(pty), b"", "what is on the terminal")


@GROUP.check()
def nobody_who_reads_is_waited_for_no_longer_than_told(bench: Bench) -> None:
    """`send`: False when not all of it was taken in time."""
    with bench.box() as box, terminal(box, "sleep", "60", wires=True) as pty:
        wires = wires_of(pty)
        began = time.monotonic()
        hold(not wires.send(bytes(64 << 20), 0.5), "it is not taken")
        seconds = time.monotonic() - began
        hold(seconds < 10, f"it is not waited for longer than told, but {seconds:.1f} s were")


@GROUP.check()
def closing_the_terminal_closes_its_wires(bench: Bench) -> None:
    """The program reads the end of its CONTROL, even if it does not mind a hang-up."""
    script = (
        f"trap '' HUP; printf go >&{STATUS}; cat <&{CONTROL} > /tmp/said; echo end >> /tmp/said"
    )
    with bench.box() as box:
        with closing(box.open_pty(["bash", "-c", script], wires=True)) as pty:
            wires = wires_of(pty)
            Received(wires).until(lambda s: s.status == b"go", "it begins")
            hold(wires.send(b"last words ", _SECONDS), "it is taken")
            time.sleep(0.5)  # what is under way when the terminal is closed may be lost
        pty.close()
        ask = ["cat", "/tmp/said"]
        ended = eventually(
            lambda: box.exec(ask, seconds=_SECONDS).stdout == b"last words end\n", _SECONDS
        )
        hold(ended, "it reads all and the end")
        hold(not wires.send(b"x", 1.0), "nothing can be sent any more")


@GROUP.check()
def nothing_stays_behind_when_a_terminal_with_wires_is_closed(bench: Bench) -> None:
    """Whatever holds them goes with them: the box has as many processes as before."""
    with bench.box() as box:
        box.exec(["true"], seconds=_SECONDS)
        before = box.stats().processes
        for argv in (["cat"], ["true"]):
            with terminal(box, *argv, wires=True) as pty:
                pty.wait(0.3)
        left = eventually(lambda: box.stats().processes == before)
        hold(left, f"{before} processes are left, not {box.stats().processes}")


@GROUP.check()
def killing_everything_ends_the_wires(bench: Bench) -> None:
    """`kill_all`: and the box can have other ones."""
    with bench.box() as box:
        with terminal(box, "bash", "-c", _ASK, wires=True) as pty:
            box.kill_all()
            Received(wires_of(pty)).until(lambda s: s.ended, "there is an end")
        with terminal(box, "bash", "-c", _ASK, wires=True) as pty:
            wires_of(pty).send(b"again\n", _SECONDS)
            Received(wires_of(pty)).until(lambda s: s.output == b"out again", "it answers")


@GROUP.check()
def wires_end_with_their_box(bench: Bench) -> None:
    """`stop`, `reset`, `destroy`."""
    with bench.box() as box:
        with terminal(box, "bash", "-c", _ASK, wires=True) as pty:
            box.reset()
            Received(wires_of(pty)).until(lambda s: s.ended, "there is an end after a reset")
        with terminal(box, "bash", "-c", _ASK, wires=True) as pty:
            box.stop()
            Received(wires_of(pty)).until(lambda s: s.ended, "there is an end after a stop")


@GROUP.check()
def somebody_who_is_not_root_has_wires_too(bench: Bench) -> None:
    """`user`."""
    script = (
        f'id -u >&{OUTPUT}; id -g >&{STATUS}; read -r said <&{CONTROL}; echo "$said" >&{OUTPUT}'
    )
    told = {"user": "1234:2345", "cwd": "/", "wires": True}
    with bench.box() as box, terminal(box, "bash", "-c", script, **told) as pty:
        wires_of(pty).send(b"hello\n", _SECONDS)
        seen = Received(wires_of(pty))
        seen.until(lambda s: (s.output, s.status) == (b"1234\nhello\n", b"2345\n"), "it answers")


@GROUP.check()
def wires_of_two_terminals_do_not_mix(bench: Bench) -> None:
    """Each has its own three."""
    with (
        bench.box() as box,
        terminal(box, "bash", "-c", _ASK, wires=True) as one,
        terminal(box, "bash", "-c", _ASK, wires=True) as two,
    ):
        wires_of(one).send(b"one\n", _SECONDS)
        wires_of(two).send(b"two\n", _SECONDS)
        for pty, name in ((one, b"one"), (two, b"two")):
            seen = Received(wires_of(pty))
            seen.until(lambda s: bool(s.output and s.status), "it answers")
            expect(seen.output, b"out " + name, "who answers")


@GROUP.check()
def a_terminal_with_wires_starts_as_it_is_told(bench: Bench) -> None:
    """Size, folder, environment; a file that shells read when they start has no say."""
    script = 'stty size; pwd; echo "$TASK:$EXTRA"; echo end'
    told = {"EXTRA": "x", "BASH_ENV": "/tmp/env", "ENV": "/tmp/env"}
    with bench.box() as box:
        box.exec(["sh", "-c", "echo 'echo read; exit 9' > /tmp/env"], seconds=_SECONDS)
        argv = ["sh", "-c", script]
        with terminal(box, *argv, wires=True, rows=33, cols=99, cwd="/tmp", env=told) as pty:
            wanted = b"33 99\r\n/tmp\r\none two:x\r\nend\r\n"
            expect(read_until(pty, b"end\r\n"), wanted, "what it has")


@GROUP.check()
def its_own_processes_do_not_go_by_a_usual_name(bench: Bench) -> None:
    """Ending all of a kind (`sleep`, `sh`) with TERM leaves the terminal and its wires alone."""
    script = """
for p in /proc/[0-9]*; do
    read -r name < "$p/comm" && [ "$name" = sleep -o "$name" = sh -o "$name" = cat ] &&
        [ "${p#/proc/}" != $$ ] && kill "${p#/proc/}"
done 2> /dev/null; true
"""
    with bench.box() as box, terminal(box, "bash", "-c", _ASK, wires=True) as pty:
        sleeper(box)
        box.exec(["sh", "-c", script], seconds=_SECONDS)
        wires_of(pty).send(b"still\n", _SECONDS)
        Received(wires_of(pty)).until(lambda s: s.output == b"out still", "it answers")
