"""Checks that vary, moved to `excluded` in the text of a checks.yaml. Pure.

Lines are moved, not the document written anew: its comments, order and quotes are a person's.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping

from sandbox.errors import UserError

_SECTION = re.compile(r"(\w+):\s*(?:#.*)?$")
_UNPRINTABLE = re.compile("[\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff\u2028\u2029\x85]")
"""As YAML has it, beyond what JSON escapes."""


def move(text: str, lines: Mapping[str, int], reasons: Mapping[str, str]) -> str:
    """The text with some checks excluded. Raises UserError when one has no lines of its own.

    lines: every check → the line, from 1, on which it begins; reasons: those to be excluded → why.
    """
    old = text.splitlines()
    crowded = Counter(lines.values())
    gone: set[int] = set()
    for check in sorted(reasons):
        first = lines[check] - 1
        if not old[first].lstrip().startswith("- ") or crowded[lines[check]] > 1:
            raise UserError(
                f"there is no line of its own for {check}",
                hint=f"move it by hand:\n{entries(reasons)}",
            )
        gone.update(_item(old, first))
    kept = [line for number, line in enumerate(old) if number not in gone]
    return _with_entries(_closed(kept), entries(reasons))


def entries(reasons: Mapping[str, str]) -> str:
    """Items of `excluded`."""
    return "".join(
        f"  - id: {_quoted(check)}\n    reason: {_quoted(why)}\n"
        for check, why in sorted(reasons.items())
    )


def _item(lines: list[str], first: int) -> range:
    """The lines of an item: the one with its dash, and those further in."""
    indent = _indent(lines[first])
    last = first
    for number in range(first + 1, len(lines)):
        if lines[number].strip():
            if _indent(lines[number]) <= indent:
                break
            last = number
    return range(first, last + 1)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _closed(lines: list[str]) -> list[str]:
    """A section that has no item left is an empty list, not nothing."""
    closed = []
    for i, line in enumerate(lines):
        head = _SECTION.match(line)
        rest = next((x for x in lines[i + 1 :] if x.strip() and not x.lstrip().startswith("#")), "")
        bare = head and head[1] in ("scored", "gates") and not rest.startswith((" ", "-"))
        closed.append(f"{head[1]}: []" if head and bare else line)
    return closed


def _with_entries(lines: list[str], more: str) -> str:
    text = "\n".join(lines) + "\n"
    if head := re.search(r"(?m)^excluded:[ \t]*(#.*)?\n", text):
        return text[: head.end()] + _indented_as(text[head.end() :], more) + text[head.end() :]
    empty = re.compile(r"(?m)^excluded: *\[\] *\n")
    return empty.sub("", text).rstrip("\n") + "\nexcluded:\n" + more


def _indented_as(there: str, more: str) -> str:
    """Items of one list stand in one column."""
    dash = re.search(r"(?m)^( *)- ", there)
    return more if dash is None else re.sub(r"(?m)^  ", dash[1], more)


def _quoted(text: str) -> str:
    """A JSON string is a YAML one, but for what YAML does not call printable."""
    said = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda c: f"\\u{ord(c[0]):04x}", said)
