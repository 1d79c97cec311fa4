"""What is pasted arrives whole, however long its lines are."""

import hashlib

import pytest

from sandbox.model.step import Keys, Run, Status
from sandbox.runtime.base import Box
from sandbox.runtime.terminal import Terminal

PASTES = {
    "100 KB of lines": "".join(f"{i} é 'x' \"y\" $z \\\n" for i in range(5000)),
    "lines of 50 KB": ("x" * 50_000 + "\n") * 3,
    "a line just too long, and one that is not": "x" * 4096 + "\n" + "y" * 4095 + "\n",
    "no end of line": "first\n" + "z" * 9000,
}


@pytest.mark.parametrize("echo", ["echo", "-echo"])
@pytest.mark.parametrize("paste", PASTES.values(), ids=PASTES)
def test_a_paste_arrives_whole(box: Box, paste: str, echo: str):
    with Terminal(box, cwd="/root", command_seconds=30, output_bytes=4096) as terminal:
        terminal.do(Run(f"stty {echo}"))
        kept = terminal.do(Run("cat > pasted", on_timeout="keep"))
        assert kept.status in (Status.AWAITING_INPUT, Status.RUNNING)
        terminal.do(Keys(paste, seconds=30))
        ends = ("C-d",) if paste.endswith("\n") else ("C-d", "C-d")
        over = terminal.do(Keys(named=ends, until="exit", seconds=30))
        assert (over.status, over.exit_code) == (Status.EXITED, 0)
        found = terminal.do(Run("sha256sum pasted"))
        assert found.output == f"{hashlib.sha256(paste.encode()).hexdigest()}  pasted\n"


def test_a_program_that_takes_single_keys_gets_just_these(box: Box):
    script = "import os, tty; tty.setraw(0); print(len(os.read(0, 1)), flush=True); n = 1\n"
    script += "while n < 9000: n += len(os.read(0, 65536).replace(b'\\4', b''))\nprint(n)"
    with Terminal(box, cwd="/root", command_seconds=30, output_bytes=4096) as terminal:
        terminal.do(Run(f'python3 -c "{script}"', on_timeout="keep"))
        over = terminal.do(Keys("k" * 9000, until="exit", seconds=30))
        assert (over.status, over.exit_code) == (Status.EXITED, 0)
        assert over.output.split() == ["1", "9000"]
