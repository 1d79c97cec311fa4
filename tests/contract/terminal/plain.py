"""Commands as agents write them: text of many lines, quotes, here-documents, state."""

import hashlib

from sandbox.model.step import Status
from tests.contract.terminal.table import Case, like

LINES = "".join(f"line {i} 'x' \"y\" $z \\ \té\n" for i in range(4000))
"""More than 100 KB with every character that shells mind."""
MD5 = hashlib.md5(LINES.encode(), usedforsecurity=False).hexdigest()
PLAIN = (
    Case("two lines", "echo a\necho b", "a\nb\n"),
    Case(
        "a here-document",
        "cat <<'EOF'\na 'b' \"c\" $x !\n\ttab\nEOF",
        "a 'b' \"c\" $x !\n\ttab\n",
    ),
    Case(
        "a here-document and a command after it",
        "cat <<'EOF'\nx\nEOF\necho after; false",
        "x\nafter\n",
        1,
    ),
    Case(
        "a quote that is not closed",
        'echo "abc',
        "bash: unexpected EOF while looking for matching `\"'\n",
        2,
    ),
    Case(
        "a here-document without its end",
        "cat <<EOF\nabc",
        like(
            r"bash: warning: here-document at line \d+ delimited by end-of-file \(wanted `EOF'\)\nabc\n"
        ),
        why="bash counts the shell's lines, not the command's",
    ),
    Case(
        "a backslash at the end",
        "echo hi \\",
        "hi \\\n",
        why="before nothing at all it stands for itself",
    ),
    Case("a comment at the end", "echo hi # c", "hi\n"),
    Case("only a comment", "# nothing", ""),
    Case("nothing", "", ""),
    Case("only blanks and newlines", " \n\t\n ", ""),
    Case(
        "a loop over several lines",
        "for i in 1 2\ndo\n  if true; then echo $i; fi\ndone",
        "1\n2\n",
    ),
    Case(
        "a syntax error",
        "if then",
        "bash: syntax error near unexpected token `then'\n",
        2,
    ),
    Case(
        "folder, variable and function of an earlier command",
        "pwd; echo $QQ; ff",
        "/usr\n7\nfn\n",
        before=("cd /usr; export QQ=7; ff(){ echo fn; }",),
    ),
    Case("the status of an earlier command", "echo $?", "5\n", before=("(exit 5)",)),
    Case(
        "the status of an earlier command, in a subshell at once",
        "(echo $?); echo $?",
        "255\n0\n",
        before=("(exit 255)",),
    ),
    Case("what would be history", 'echo "hi!! there"', "hi!! there\n"),
    Case("an escaped semicolon", "find /etc/passwd -exec echo {} \\;", "/etc/passwd\n"),
    Case("a tab", "printf '%s|' 'a\tb'", "a\tb|"),
    Case("no newline at the end", "printf abc", "abc"),
    Case("one line of 20 KB", "echo " + "x" * 20000 + " | wc -c", "20001\n"),
    Case(
        "a here-document of 100 KB",
        f"cat > /tmp/big.$$ <<'EOF_Q'\n{LINES}EOF_Q\nmd5sum < /tmp/big.$$; rm /tmp/big.$$",
        f"{MD5}  -\n",
    ),
    Case("one line of 1 MB", "x='" + "y" * (1 << 20) + "'; echo ${#x}", "1048576\n"),
    Case(
        "a script of 2,000 lines",
        "n=0\n" + "n=$((n + 1)); f() { echo $n; }\n" * 2000 + "f",
        "2000\n",
    ),
    Case(
        "every byte from 1 to 255",
        "printf %s '"
        + bytes(range(1, 256)).replace(b"'", b"'\\''").decode("utf-8", "surrogateescape")
        + "' | od -An -tx1 | tr -d ' \\n'",
        bytes(range(1, 256)).hex(),
    ),
    Case(
        "every way to quote", r"""echo 'a\n' "b\\n" $'c\td' e\ f $"g" """, "a\\n b\\n c\td e f g\n"
    ),
    Case(
        "an alias of the same command does not tell",
        "hi",
        "hi there\n",
        before=("shopt -s expand_aliases; alias hi='echo hi there'",),
    ),
    Case("UTF-8", "printf 'é漢字😀\\n'", "é漢字😀\n"),
    Case(
        "UTF-8, byte after byte",
        'for c in e6 bc a2 e5 ad 97; do printf "\\x$c"; sleep 0.02; done',
        "漢字",
    ),
    Case("bytes that are no UTF-8", "printf '\\377\\376abc\\n'", "\\xff\\xfeabc\n"),
    Case("half a character at the end", "printf 'a\\346\\274'", "a\\xe6\\xbc"),
    Case("a NUL byte in the output", "printf 'a\\0b\\n'", "a\\x00b\n"),
    Case("a progress bar", "printf 'p1\\rp2\\rp3\\n'", "p1\rp2\rp3\n"),
    Case("colours", "printf '\\033[31mred\\033[0m\\n'", "\x1b[31mred\x1b[0m\n"),
    Case(
        "a title and an empty screen",
        "printf '\\033]0;title\\007\\033[2J\\033[Hhello\\n'",
        "\x1b]0;title\x07\x1b[2J\x1b[Hhello\n",
    ),
    Case(
        "what other drivers print as their marks",
        "echo UNIQUESTRING29234 EXITCODESTART7EXITCODEEND; false",
        "UNIQUESTRING29234 EXITCODESTART7EXITCODEEND\n",
        1,
    ),
    Case("the size of the terminal", "stty size </dev/tty", "40 160\n"),
    Case(
        "is it a terminal",
        "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo tty || echo notty",
        "tty\n",
        piped="notty\n",
    ),
    Case(
        "a command that a signal ends",
        "bash -c 'kill -9 $$'",
        like(r"(bash: line \d+: +\d+ )?Killed( +bash -c 'kill -9 \$\$')?\n"),
        137,
        why="bash says the process's number",
    ),
    Case(
        "a command that is not there",
        "no-such-command-here",
        "bash: no-such-command-here: command not found\n",
        127,
    ),
    Case("a file that is no program", "/etc/passwd", "bash: /etc/passwd: Permission denied\n", 126),
    Case(
        "a loop around nothing is broken",
        "break; echo $?",
        "bash: break: only meaningful in a `for', `while', or `until' loop\n0\n",
    ),
    Case(
        "return outside of a function",
        "return 3",
        "bash: return: can only `return' from a function or sourced script\n",
        2,
    ),
    Case("exit 3", "exit 3", "exit\n", 3, Status.RESTARTED, stays=False),
    Case("exit in a subshell", "(exit 3)", "", 3),
    Case("exec of another program", "exec true", "", 0, Status.RESTARTED, stays=False),
    Case("the shell kills itself", "kill -9 $$", "", 137, Status.RESTARTED, stays=False),
    Case("set -e and a failure", "false", "", 1, Status.RESTARTED, before=("set -e",), stays=False),
)
