"""Commands that never end by themselves: they are ended, and the shell goes on."""

from sandbox.model.step import Status
from tests.contract.terminal.table import ANY, Case, hangs, like

OWN = "what it draws is its own"
STUBBORN = """import signal, time
for one in (1, 2, 3, 15): signal.signal(one, signal.SIG_IGN)
print(1, flush=True)
while True: time.sleep(100)"""
HUNG = (
    Case(
        "the shell stops itself",
        "kill -STOP $$",
        "^C",
        137,
        Status.RESTARTED,
        piped="",
        beside="^C",
        seconds=1.0,
        stays=False,
        why="that it was ended in the end is seen by `signals`",
    ),
    Case(
        "the shell minds no signals",
        "trap '' INT TERM HUP QUIT; while :; do :; done",
        "^C",
        137,
        Status.RESTARTED,
        piped="",
        beside="^C",
        seconds=1.0,
        stays=False,
    ),
    hangs("python waits", "python3", waits=True, ends="TERM", output=ANY, modes=("tty",), why=OWN),
    Case("python has nothing to read", "python3", "", modes=("pipe",)),
    hangs(
        "vi", "vi -u NONE -n /tmp/f", waits=True, ends="TERM", output=ANY, modes=("tty",), why=OWN
    ),
    Case(
        "less",
        "seq 1000 | less",
        ANY,
        15,
        Status.TIMED_OUT,
        seconds=1.0,
        waits=True,
        modes=("tty",),
        why="what it draws is its own, and so is its exit code",
    ),
    Case("less into a pipe", "seq 3 | less", "1\n2\n3\n", modes=("pipe",)),
    hangs(
        "bash in bash", "bash --norc", waits=True, ends="KILL", output=ANY, modes=("tty",), why=OWN
    ),
    Case("bash in bash has nothing to read", "bash", "", modes=("pipe",)),
    hangs("cat of the terminal", "cat", waits=True, modes=("tty",)),
    Case("cat of nothing", "cat", "", modes=("pipe",)),
    hangs("cat of /dev/tty", "cat /dev/tty", waits=True),
    hangs(
        "a question for a password",
        "read -s -p 'Password: ' p </dev/tty; echo got:$p",
        output="Password: \n",
        waits=True,
        piped="Password: ",
        beside=like("\n?"),
    ),
    hangs("sleep", "sleep 6123"),
    hangs("sleep after some output", "echo partial; sleep 6124", "partial\n"),
    hangs("a subshell that minds no INT", "(trap '' INT; sleep 6125; sleep 6125)", ends="TERM"),
    hangs(
        "a subshell that minds neither INT nor TERM",
        "(trap '' INT TERM; sleep 6126; sleep 6126)",
        ends="KILL",
    ),
    hangs("a loop of builtins", "while :; do :; done"),
    hangs("a reader that does not read", "yes | sleep 6127"),
    hangs("a process that has left the session", "setsid -w sleep 6128"),
    hangs(
        "a process in the background is the shell's own, and stays",
        "sleep 6132 >/dev/null & wait",
        output=like(r"\[1\] \d+\n\^C\n"),
        piped=like(r"\[1\] \d+\n"),
        after=("kill %1; wait %1",),
        why="bash says its number",
    ),
    hangs(
        "a fifo that nobody writes", "mkfifo /tmp/f.$$; cat < /tmp/f.$$", after=("rm /tmp/f.$$",)
    ),
    hangs(
        "the terminal sends no signals any more",
        "stty -isig </dev/tty; sleep 6133",
        after=("stty $SANE </dev/tty",),
    ),
    hangs(
        "the terminal is raw, for ever",
        "stty raw -echo </dev/tty; sleep 6134",
        output="\n",
        beside=like("\n?"),
        after=("stty $SANE </dev/tty",),
    ),
    hangs("yes", "yes >/dev/null"),
    hangs("a pipe without end", "tail -f /dev/null | while read -r l; do echo $l; done"),
    hangs("python minds nothing but KILL", f"python3 -c '{STUBBORN}'", "1\n", ends="KILL"),
    hangs(
        "a trap of the shell's own for INT",
        "trap 'echo caught' INT; sleep 6135",
        piped="\n",
        why="bash lets a program's death drop the rest of the line, and the trap with it",
    ),
)
