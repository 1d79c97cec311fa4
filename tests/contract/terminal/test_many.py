"""Many terminals in one box at once: each its own, and nothing is left of any."""

from concurrent.futures import ThreadPoolExecutor

from sandbox.audit.conformance import Bench
from sandbox.model.step import Keys, Run, Status, Wait
from sandbox.runtime.base import Box
from sandbox.runtime.terminal import Terminal
from tests.contract.terminal.conftest import agents_box
from tests.support.waiting import eventually

TERMINALS, ROUNDS = 50, 8


def works(box: Box, number: int) -> list[str]:
    """What went wrong."""
    with Terminal(box, cwd="/root", command_seconds=60, output_bytes=1 << 16) as terminal:
        wrong = []
        mine = f"/tmp/of-{number}"
        terminal.do(Run(f"mkdir {mine}; cd {mine}; x={number}; f() {{ echo $x $PWD $1; }}"))
        for turn in range(ROUNDS):
            seen = terminal.do(
                Run(f"f {turn}; seq {number} {number + 99}; (exit {number})", tty=turn % 2 == 0)
            )
            lines = "".join(f"{n}\n" for n in range(number, number + 100))
            if (seen.output, seen.exit_code) != (f"{number} {mine} {turn}\n{lines}", number):
                wrong.append(repr(seen))
        seen = terminal.do(Run("cat", seconds=60, on_timeout="keep"))
        if seen.status is not Status.AWAITING_INPUT:
            wrong.append(repr(seen))
        terminal.do(Keys(f"of {number}\r", seconds=60, text=f"of {number}\r\nof {number}\r\n"))
        terminal.do(Keys(named=("C-d",), seconds=60, until="exit"))
        terminal.do(Wait(60))
        seen = terminal.do(Run("echo $?; pwd; rm -r $PWD"))
        if seen.output != f"0\n{mine}\n":
            wrong.append(repr(seen))
        return wrong


def test_fifty_terminals_in_one_box_do_not_mix(shared: tuple[Bench, Box]):
    with agents_box(shared[0], pids=400, memory_mib=512) as box:
        before = box.stats().processes
        with ThreadPoolExecutor(TERMINALS) as pool:
            wrong = list(pool.map(lambda number: works(box, number), range(TERMINALS)))
        assert wrong == [[]] * TERMINALS
        assert eventually(lambda: box.stats().processes == before, 30)
        assert box.exec(["ls", "/tmp"], seconds=30).stdout == b""
