"""The hidden tests, changed for one box: canaries in place of tests, expectations left out. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sandbox.errors import VerifierFault
from sandbox.formats.digest import Entry
from sandbox.model.layers import Canaries, Edit, Plain


def canaried(
    tests: Sequence[Entry], canaries: Canaries, names: Collection[str], drawn: Mapping[str, int]
) -> tuple[Entry, ...]:
    """With the canaries of these units. Raises VerifierFault when an edit does not fit.

    drawn: unit → which of its canaries, if not the first.
    """
    chosen = (u.canary(drawn) for u in canaries.units if u.name in names)
    return edited(tests, [edit for canary in chosen for edit in canary.edits])


def edited(tests: Sequence[Entry], edits: Iterable[Edit]) -> tuple[Entry, ...]:
    """Each edit changes one literal on one line. Raises VerifierFault when one does not fit."""
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    if missing := by_path.keys() - {e.path for e in tests}:
        raise VerifierFault(f"there is no hidden test {min(missing)} to edit", retry=False)
    return tuple(
        replace(e, data=_edited(e, by_path[e.path])) if e.path in by_path else e for e in tests
    )


def _edited(entry: Entry, edits: Sequence[Edit]) -> bytes:
    lines = entry.data.decode("utf-8").split("\n")
    # From the end, so that the places of the others stay.
    for edit in sorted(edits, key=lambda e: (e.line, e.column), reverse=True):
        line = lines[edit.line - 1] if 0 < edit.line <= len(lines) else ""
        if not line.startswith(edit.old, edit.column):
            where = f"{edit.path}:{edit.line}"
            raise VerifierFault(f"{where}: `{edit.old}` is not where it was", retry=False)
        end = edit.column + len(edit.old)
        lines[edit.line - 1] = line[: edit.column] + edit.new + line[end:]
    return "\n".join(lines).encode("utf-8")


OBSERVE = "__observe__"
"""What the plain runner gives every test module: tells the host a value under a key."""


def withheld(tests: Sequence[Entry], plain: Plain | None) -> tuple[Entry, ...]:
    """With each assertion of `plain` in which a literal is expected replaced by an observation."""
    sites: dict[str, dict[tuple[int, int], tuple[int, int, str]]] = {}
    for site in plain.sites if plain else ():
        call = f"{OBSERVE}({site.key!r}, {site.source})"
        end = (site.end_line, site.end_column, call)
        sites.setdefault(site.path, {})[site.line, site.column] = end
    return tuple(
        replace(e, data=_observing(e.data, sites[e.path])) if e.path in sites else e for e in tests
    )


def _observing(data: bytes, sites: Mapping[tuple[int, int], tuple[int, int, str]]) -> bytes:
    lines = data.decode("utf-8").split("\n")
    for (line, column), (end_line, end_column, call) in sorted(sites.items(), reverse=True):
        head, tail = lines[line - 1][:column], lines[end_line - 1][end_column:]
        if tail.lstrip().startswith("#"):
            tail = ""  # it may say what is expected
        # As many lines as before: what a test says of lines stays true.
        lines[line - 1 : end_line] = [head + call + tail, *[""] * (end_line - line)]
    return "\n".join(lines).encode("utf-8")
