"""What everybody can read of a hidden test: its older form, in the task's own tree. Pure.

Where a line is as it was there, a canary that changes it is told from the test by reading; so is one
that brings back what stood there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sandbox.audit.canary.literals import read_files
from sandbox.audit.canary.places import Literal
from sandbox.formats.digest import Entry

_SHORT = 4
"""A number or a letter, quoted, may stand anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Of one function, table or file, in public."""

    texts: frozenset[str] = frozenset()
    """Its literals, as they are written."""
    lines: frozenset[str] = frozenset()
    """Those that have a literal."""

    def knows(self, literal: Literal, text: str) -> bool:
        """Can this be read there, in the literal's place or elsewhere?"""
        end = literal.column + len(literal.text)
        line = literal.whole[: literal.column] + text + literal.whole[end:]
        return line.strip() in self.lines or (len(text) > _SHORT and text in self.texts)


NOTHING = Form()


def public_forms(tree: Sequence[Entry], paths: Iterable[str]) -> dict[str, Form]:
    """Id of a function or a table, or path of another file → its form in the task's tree.

    paths: of the hidden tests.
    """
    wanted = {*paths}
    entries = [e for e in tree if e.path in wanted and e.kind != "link"]
    made = {e.path: _of_file(e) for e in entries if not e.path.endswith(".py")}
    for file in read_files(entries).values():
        for holder in (*file.shared.values(), *file.functions.values()):
            made[holder.id] = Form(
                texts=frozenset(x.text for x in holder.literals),
                lines=frozenset(x.whole.strip() for x in holder.literals),
            )
    return made


def of_several(forms: Mapping[str, Form], ids: Iterable[str]) -> Form:
    """All that these are known by, together."""
    found = [forms.get(i, NOTHING) for i in ids]
    return Form(
        texts=frozenset().union(*(f.texts for f in found)),
        lines=frozenset().union(*(f.lines for f in found)),
    )


def _of_file(entry: Entry) -> Form:
    lines = entry.data.decode("utf-8", "replace").split("\n")
    return Form(lines=frozenset(line.strip() for line in lines))
