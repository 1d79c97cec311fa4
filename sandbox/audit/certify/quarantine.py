"""Checks that vary, moved to `excluded` in the text of a checks.yaml. Pure.

Lines are moved, not the document written anew: its comments, order and quotes are a person's.
"""

import json
import re
from collections.abc import Mapping

from sandbox.errors import UserError

_SECTION = re.compile(r"(\w+):\s*(#.*)?$")
_ITEM = re.compile(r"( *)- (?:id: )?(.*?)\s*$")


def move(text: str, reasons: Mapping[str, str]) -> str:
    """The text with these checks excluded. Raises UserError when a line of one cannot be told."""
    kept, found = [], set()
    section, inside = "", -1
    for line in text.splitlines():
        if head := _SECTION.match(line):
            section = head[1]
        indent = len(line) - len(line.lstrip(" "))
        if inside >= 0 and line.strip() and indent > inside:
            continue  # a further key of the item that goes
        inside = -1
        item = _ITEM.match(line) if section in ("scored", "gates") else None
        if item and (name := _scalar(item[2])) in reasons:
            found.add(name)
            inside = indent
        else:
            kept.append(line)
    if lost := sorted(reasons.keys() - found):
        raise UserError(
            f"there is no line of its own for {lost[0]}",
            hint=f"move it by hand:\n{entries(reasons)}",
        )
    return _with_entries(_closed(kept), entries(reasons))


def entries(reasons: Mapping[str, str]) -> str:
    """Items of `excluded`. A JSON string is a YAML one."""
    return "".join(
        f"  - id: {json.dumps(check, ensure_ascii=False)}\n"
        f"    reason: {json.dumps(why, ensure_ascii=False)}\n"
        for check, why in sorted(reasons.items())
    )


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
    head = re.search(r"(?m)^excluded:[ \t]*(#.*)?\n", text)
    if head:
        return text[: head.end()] + more + text[head.end() :]
    empty = re.compile(r"(?m)^excluded: *\[\] *\n")
    return empty.sub("", text).rstrip("\n") + "\nexcluded:\n" + more


def _scalar(text: str) -> str:
    """A plain, single-quoted or double-quoted string on one line, without its comment."""
    if text.startswith('"'):
        try:
            return str(json.JSONDecoder().raw_decode(text)[0])
        except ValueError:
            return text
    if text.startswith("'"):
        return re.sub(r"'\s*(#.*)?$", "", text[1:]).replace("''", "'")
    return re.sub(r"\s+#.*$", "", text)
