"""What the terminal says to its bash, and what that says back: lines and marks, no I/O.

Bash reads its commands from a pipe of its own, so nothing that programs print, read or do to the
terminal's settings has a part in them. A command is one line: it prints a mark, evaluates the
command, reports its status and the folder on another pipe, and prints a mark again. The marks only
say where in a stream the output begins and ends; that it has ended is what the report says. A
second line reports again, for bash drops the rest of the first at ^C and at some errors.
"""

import re
import secrets
from dataclasses import dataclass

from sandbox.runtime.base import OUTPUT, STATUS

NULL, TERMINAL = 249, 252
"""Bash's own descriptors of /dev/null and of the terminal, whatever becomes of files and the first
three descriptors."""
BOOT = f"exec {TERMINAL}<&0 {NULL}<>/dev/null; stty iutf8; PS1= PS2= exec bash --noprofile --norc --noediting -i <&250 250<&-"
PROMPT = b"bash --noprofile --norc -i"
NONCE_DIGITS = 16
"""Digits, for a terminal may be set to change letters."""
_MARK = b"\x1b]7133;"
BEGIN, END, AFTER = b"1", b"2", b"3"
_ENABLE = (
    b"\\builtin enable builtin printf eval unset return : || \\builtin :\n"
    b"\\builtin unalias \\{ \\} 2>/dev/null || \\builtin :\n"
)
"""What our lines cannot be without. It never fails: the shell may be one that ends then."""
_REPORT = re.compile(rb"([DR])(\d{16});(\d{1,3});(.*)", re.DOTALL)
_ESCAPES = {0x5C: b"\\\\", 0x27: b"\\'", 0x0A: b"\\n", 0x09: b"\\t", 0x0D: b"\\r"}
_PLAIN = {"n": b"\n", "t": b"\t", "r": b"\r", "E": b"\x1b", "e": b"\x1b", "a": b"\a", "b": b"\b",
          "f": b"\f", "v": b"\v"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    nonce: bytes
    status: int
    cwd: str
    late: bool
    """The first was dropped, and so may have been the mark."""


def fresh_nonce() -> bytes:
    return b"%016d" % secrets.randbelow(10**NONCE_DIGITS)


def mark(kind: bytes, nonce: bytes) -> bytes:
    return _MARK + kind + nonce + b"\x07"


def setup(nonce: bytes) -> bytes:
    """Bash's first line: no prompts, no history; its process id as the status."""
    said = _say(b"H", nonce, b'"$$" "${DIRSTACK-}"')
    return b"export -n PS1 PS2; set +o history +H; " + said + b"\n"


def command(text: bytes, nonce: bytes, *, last: int, tty: bool, stdin: bytes | None) -> bytes:
    """The two lines for `text`, in which `$?` is `last` at first.

    Names that hold the number cannot have been taken before, nor made readonly.
    """
    where, name = TERMINAL if tty else OUTPUT, b"_" + nonce
    begin = _show(BEGIN, nonce, where)
    if last:
        # A function, for nothing else can set any status without a process; gone at once.
        body = b"\\builtin unset -f %s; %s; \\builtin return %d" % (name, begin, last & 0xFF)
        begin = b"%s() { %s; } 2>/dev/null; %s && \\builtin :" % (name, body, name)
    run = b"\\builtin eval " + quote(text) + _redirections(tty=tty, stdin=stdin)
    # The status is kept when it could not be told.
    told = _say(b"D", nonce, b'"$%s" "${DIRSTACK-}"' % name) + b" && \\builtin unset -v " + name
    last_mark = _show(END, nonce, where)
    end = b"{ %s=$?; %s; %s; PS1=; \\builtin enable eval; } >&%d 2>&1" % (
        name,
        told,
        last_mark,
        NULL,
    )
    late = _say(b"R", nonce, b'"$?" "${DIRSTACK-}"')
    return begin + b"; " + run + b"; " + end + b"\n" + late + b"\n"


def show_after(nonce: bytes, *, tty: bool) -> bytes:
    """A mark that comes after the one at the end, and after all that was printed before it."""
    return _show(AFTER, nonce, TERMINAL if tty else OUTPUT) + b"\n"


def show_end(nonce: bytes, *, tty: bool) -> bytes:
    """The mark at the end once more: the report may be late because what is needed was switched off."""
    return _ENABLE + _show(END, nonce, TERMINAL if tty else OUTPUT) + b"\n"


def mend(nonce: bytes) -> bytes:
    """Make `builtin` and `printf` what they were, if they are something else, and report.

    In POSIX mode, which a variable switches on, `unset` is found before any function.
    """
    return (
        b"POSIXLY_CORRECT=y\n\\unset -f builtin enable\n\\unset -v POSIXLY_CORRECT\n"
        b"\\enable builtin\n"
        + _ENABLE
        + _say(b"R", nonce, b'"${_%s-$?}" "${DIRSTACK-}"' % nonce)
        + b"; \\builtin unset -v _%s\n" % nonce
    )


def parse_report(line: bytes) -> Report | None:
    """What a line on the status pipe says; None if it is none of ours."""
    found = _REPORT.fullmatch(line)
    if found is None:
        return None
    kind, nonce, status, cwd = found.groups()
    return Report(nonce, int(status), unquote(cwd), kind == b"R")


def parse_setup(line: bytes, nonce: bytes) -> tuple[int, str] | None:
    found = re.fullmatch(rb"H%s;(\d{1,9});(.*)" % nonce, line, re.DOTALL)
    return (int(found[1]), unquote(found[2])) if found else None


def quote(word: bytes) -> bytes:
    """`word` as one bash word on one line of plain ASCII."""
    if word.isalnum() and word.isascii():
        return word
    out = bytearray(b"$'")
    for c in word:
        if c in _ESCAPES:
            out += _ESCAPES[c]
        elif c < 0x20 or c >= 0x7F:
            out += b"\\%03o" % c
        else:
            out.append(c)
    return bytes(out + b"'")


def unquote(word: bytes) -> str:
    """The reverse of bash's %q."""
    if word == b"''":
        return ""
    if word.startswith(b"$'"):
        word = re.sub(rb"\\([0-7]{1,3}|.)", _escaped, word[2:-1], flags=re.DOTALL)
    else:
        word = re.sub(rb"\\(.)", rb"\1", word, flags=re.DOTALL)
    return word.decode("utf-8", "surrogateescape")


def _say(kind: bytes, nonce: bytes, words: bytes) -> bytes:
    return b"\\builtin printf '%s%s;%%s;%%q\\n' %s >&%d" % (kind, nonce, words, STATUS)


def _show(kind: bytes, nonce: bytes, where: int) -> bytes:
    return b"\\builtin printf '\\e]7133;%s%s\\a' >&%d" % (kind, nonce, where)


def _redirections(*, tty: bool, stdin: bytes | None) -> bytes:
    """Of the command. It gets none of our descriptors."""
    closed = b" %d>&- %d>&- %d>&- %d>&-" % (STATUS, TERMINAL, OUTPUT, NULL)
    if stdin is not None:
        source = b" < <(\\builtin printf %%s %s)" % quote(stdin)
    else:
        source = b" <&%d" % (TERMINAL if tty else NULL)
    return source + (b"" if tty else b" >&%d 2>&1" % OUTPUT) + closed


def _escaped(found: re.Match[bytes]) -> bytes:
    said = found[1].decode("latin-1")
    if said[0] in "01234567":
        return bytes([int(said, 8) & 0xFF])
    return _PLAIN.get(said, found[1])
