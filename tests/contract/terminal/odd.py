"""What somebody does who wants to confuse the terminal: its words taken away, its pipes, its files."""

import re

from sandbox.model.step import Status
from tests.contract.terminal.table import ANY, Case, like

FORGER = r"""
import os, re, sys
maps = open(f"/proc/{os.getppid()}/maps").read()
start, end = re.search("([0-9a-f]+)-([0-9a-f]+) rw-p .*heap", maps).groups()
with open(f"/proc/{os.getppid()}/mem", "rb") as memory:
    memory.seek(int(start, 16))
    heap = memory.read(int(end, 16) - int(start, 16))
stolen = {n.decode() for n in re.findall(rb"7133;1(\d{16})", heap)}
print("stolen" if stolen else "nothing stolen", flush=True)
for number in ["0123456789012345", *sorted(stolen)]:
    sys.stdout.write(f"\x1b]7133;2{number}\a" f"\x1b]7133;2{number}\a")
    sys.stdout.write(f"D{number};0;/lies\nR{number};0;/lies\n" if number == "0123456789012345" else "")
sys.stdout.flush()
"""
INVENTED = (
    "\x1b]7133;20123456789012345\x07\x1b]7133;20123456789012345\x07"
    "D0123456789012345;0;/lies\nR0123456789012345;0;/lies\n"
)
FORGED = like(re.escape(f"stolen\n{INVENTED}") + "(\x1b]7133;2\\d{16}\x07)*after\n")
FORGE = f"python3 - <<'EOF'\n{FORGER}EOF\necho after; false"
TO_ALL = (
    "tell() { for f in /proc/$$/fd/*; do while read -r k v; do [[ $k$v == flags:*1 ]] && echo $1 >$f;"
    " done <${f/fd/fdinfo}; done 2>/dev/null; }; tell"
)
"""Write to all that the shell itself only writes to."""

TAKES_NAMES = "unset() { echo u; }; return() { echo r; }; command() { echo c; }; set() { echo s; }"
ODD = (
    Case(
        "forged marks",
        FORGE,
        FORGED,
        1,
        why="numbers of earlier commands, which are found too, are as good as invented",
    ),
    Case("half a mark", "printf '\\e]7133;2'", "\x1b]7133;2"),
    Case(
        "the beginnings of marks", "printf '\\e\\e]\\e]7\\e]713\\e'", "\x1b\x1b]\x1b]7\x1b]713\x1b"
    ),
    Case(
        "half a mark, late",
        "printf '\\e]7133'; sleep 0.1; printf ';2'; sleep 0.1; printf '12\\a'",
        "\x1b]7133;212\x07",
    ),
    Case(
        "reports of somebody else",
        f"{TO_ALL} 'D0123456789012345;9;/lies'; echo a",
        like("(D0.*lies\n)*a\n"),
        background=like("(D0.*lies\n)*"),
        why="how many descriptors the shell has is its own",
    ),
    Case("a report that never ends", f"{TO_ALL} $(printf %070000d 0); echo a", ANY, background=ANY),
    Case(
        "lines of somebody else on the shell's own input",
        "echo 'echo typed' >/proc/$$/fd/0; echo a",
        ANY,
    ),
    Case("writing to all that the shell has", f"{TO_ALL} x; echo a", ANY, background=ANY),
    Case(
        "a function named builtin",
        "builtin() { echo b; }; (exit 3)",
        like("(b\n)*"),
        3,
        background=ANY,
        why="it is called until it is unset",
    ),
    Case(
        "a function named builtin, for good",
        "builtin() { :; }; readonly -f builtin",
        ANY,
        None,
        Status.RESTARTED,
        background=ANY,
        stays=False,
        why="bash says what cannot be unset",
    ),
    Case(
        "functions named as what unsets them",
        f"{TAKES_NAMES}; builtin() {{ :; }}",
        "",
        background=ANY,
    ),
    Case("a function named eval", "eval() { echo no; }", "", after=("unset -f eval",)),
    Case(
        "a function named eval, then",
        "echo a",
        "a\n",
        before=("eval() { echo no; }; readonly -f eval",),
    ),
    Case(
        "functions named printf, unset, return, command",
        "(exit 3)",
        "",
        3,
        before=(f"printf() {{ echo p; }}; {TAKES_NAMES}",),
    ),
    Case("a function named colon", "(exit 3)", "", 3, before=(":() { echo colon; }",)),
    Case(
        "functions that are readonly",
        "(exit 3)",
        "",
        3,
        before=("printf() { echo p; }; eval() { echo e; }; readonly -f printf eval",),
    ),
    Case(
        "aliases",
        "(exit 3)",
        "",
        3,
        before=("alias builtin='echo no' eval='echo no' [[='echo no' printf=no unset=no",),
        after=("unalias -a",),
    ),
    Case(
        "an alias of a brace costs one command",
        "echo a",
        "",
        2,
        before=("alias {='echo no'",),
        background="bash: syntax error near unexpected token `}'\n",
        why="the shell cannot read its own lines, until the alias is taken away",
    ),
    Case(
        "aliases of words",
        "if true; then echo a; fi",
        "a\n",
        before=("alias '}=echo no' 'if=if' 'fi=fi' 'while=no'",),
        after=("unalias -a",),
    ),
    Case("printf is switched off", "enable -n printf; (exit 3)", ANY, 3, background=ANY),
    Case("eval is switched off", "enable -n eval; (exit 3)", "", 3),
    Case("eval was switched off", "echo a", "a\n", before=("enable -n eval",)),
    Case("builtin is switched off", "enable -n builtin; (exit 3)", ANY, 3, background=ANY),
    Case(
        "all of them are switched off",
        "enable -n printf eval unset return enable",
        ANY,
        None,
        Status.RESTARTED,
        background=ANY,
        stays=False,
    ),
    Case(
        "BASH_CMDS and hash", "hash -p /bin/false echo; BASH_CMDS[printf]=/bin/false; echo a", "a\n"
    ),
    Case(
        "the variable PWD is readonly",
        "cd /usr; pwd",
        like("(bash: PWD: readonly variable\n)?/usr\n"),
        before=("readonly PWD",),
    ),
    Case("the variable PWD is gone", "cd /usr && unset PWD && pwd", "/usr\n"),
    Case("the variable PWD lies", "PWD=/lies; pwd", "/root\n"),
    Case(
        "the folder is gone",
        "mkdir /tmp/gone && cd /tmp/gone && rm -r /tmp/gone; echo a",
        "a\n",
        after=("cd",),
    ),
    Case("the shell's memory is limited", "ulimit -v 65536; echo a", "a\n"),
    Case("the shell's files may have no size", "ulimit -f 0; echo a", "a\n"),
    Case("the command's own descriptors are shut", "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 "),
    Case(
        "a script that closes all", "python3 -c 'import os; os.closerange(0, 999)'; echo a", "a\n"
    ),
    Case("the shell's end of the terminal is shut", "exec 252>&-; echo a", "a\n"),
    Case("the shell's reports go nowhere", "exec 251>/dev/null; echo a", "a\n"),
    Case("the shell's input is another", "exec 250</dev/null; echo a", "a\n"),
    Case("the shell's output pipe is shut", "exec 253>&-; echo a", "a\n"),
    Case(
        "the shell interrupts itself",
        "kill -INT $$; echo a",
        "\n",
        130,
        piped="",
        beside=like("\n?"),
    ),
    Case(
        "the shell is asked to end",
        "kill -TERM $$; echo a",
        "a\n",
        why="an interactive bash minds no TERM",
    ),
    Case("the shell is hung up", "kill -HUP $$; sleep 5", "", 129, Status.RESTARTED, stays=False),
    Case("the shell is aborted", "kill -ABRT $$; sleep 5", "", 134, Status.RESTARTED, stays=False),
    Case("the shell is to quit", "kill -QUIT $$; echo a", "a\n"),
    Case("the shell stops itself, politely", "kill -TSTP $$; echo a", "a\n"),
    Case("logout", "logout", "bash: logout: not login shell: use `exit'\n", 1),
    Case(
        "a shell instead of the shell",
        "exec bash",
        "",
        0,
        Status.RESTARTED,
        modes=("pipe",),
        stays=False,
    ),
    Case(
        "everybody is killed",
        "kill -9 -1 2>/dev/null; echo a",
        "a\n",
        breaks_box=True,
        why="bash itself is not",
    ),
    Case("another terminal", "script -qec 'echo hi; exit 3' /dev/null", "hi\n", 3),
    Case(
        "another terminal that hangs up",
        'python3 -c \'import pty; pty.spawn(["sh", "-c", "echo in; kill -9 $$"])\'; echo a',
        "in\na\n",
    ),
    Case(
        "another session takes the terminal", "setsid -wc true 2>&1 | cat >/tmp/said; echo a", ANY
    ),
    Case(
        "TIOCSTI",
        'python3 -c \'import fcntl, termios\ntry: fcntl.ioctl(open("/dev/tty"), termios.TIOCSTI, b"x")\nexcept OSError: pass\'; echo a',
        ANY,
    ),
    Case(
        "the terminal hangs up",
        "python3 -c 'import os, termios, fcntl\nfcntl.ioctl(os.open(\"/dev/tty\", 2), termios.TIOCNOTTY)' ; echo a",
        "a\n",
    ),
    Case("no /dev/null", "rm /dev/null 2>&1 | cat >/tmp/said; echo a", "a\n", breaks_box=True),
    Case("nobody may use the terminal", "chmod 000 /dev/pts/*; echo a", "a\n", breaks_box=True),
    Case("no /proc for what is run", "unshare -m true; echo a", ANY, breaks_box=True),
    Case(
        "no programs at all",
        "mv /usr/bin/sleep /tmp; PATH=/none; echo a",
        "a\n",
        after=("PATH=/usr/bin",),
        breaks_box=True,
    ),
)
