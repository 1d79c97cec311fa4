"""What to look for, and where it is found. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sandbox.audit.leaks.unpack import unpacked
from sandbox.audit.source.trees import Source
from sandbox.formats.digest import Entry

_TEST = re.compile(rb"def (test_\w{12,})\(")
_NAME = re.compile(rb"^\s*(?:def |class |(?=\w+ *[:=]))([A-Za-z_]\w{11,})\b", re.MULTILINE)
"""Where it is given to something: what is merely used may be anybody's."""
_LONG_ENOUGH = 40
_COMPILED = (".pyc", ".pyo", ".so")


@dataclass(frozen=True, slots=True, kw_only=True)
class Needles:
    lines: frozenset[bytes]
    """Long lines that the reference solution adds."""
    tests: frozenset[bytes]
    """Long names of hidden tests."""
    names: frozenset[bytes]
    """Long names that the reference solution brings: all that is left of it in bytecode."""
    others: Mapping[bytes, str]
    """What must be nowhere at all → what it is."""

    def __len__(self) -> int:
        return len(self.lines) + len(self.tests)


def needles(
    source: Source, repository: Iterable[Entry], tests: Iterable[Entry], others: Mapping[bytes, str]
) -> Needles:
    """What the pinned commit has itself is no secret."""
    known = b"\n".join(e.data for e in repository)
    added = {line for path in source.changed for line in _added(source, path)}
    hidden = b"\n".join(e.data for e in tests)
    brought = b"\n".join(source.solved[p].data for p in source.modules)
    return Needles(
        lines=frozenset(a for a in added if len(a) > _LONG_ENOUGH and a not in known),
        tests=frozenset(n for n in _TEST.findall(hidden) if n not in known),
        names=frozenset(n for n in _NAME.findall(brought) if n not in known),
        others=others,
    )


def found_in(path: str, data: bytes, wanted: Needles) -> Iterator[str]:
    """What is found, in the file or in what it holds when it is an archive.

    One common line may be a coincidence, and so may one name; two are a trace.
    """
    for inner, content in unpacked(path, data):
        lines = [n for n in wanted.lines if n in content]
        tests = [n for n in wanted.tests if n in content]
        names = [n for n in wanted.names if n in content] if inner.endswith(_COMPILED) else []
        for what, hits, least in (("lines", lines, 2), ("tests", tests, 1), ("names", names, 2)):
            if len(hits) >= least:
                said = min(hits).decode("utf-8", "backslashreplace")
                more = f" and {len(hits) - 1} more" if len(hits) > 1 else ""
                yield f"{inner} holds {what} of what is secret: {said}{more}"
        yield from (
            f"{inner} holds {told}" for secret, told in wanted.others.items() if secret in content
        )


def _added(source: Source, path: str) -> Iterator[bytes]:
    """Without what is around them: elsewhere, they may stand further in."""
    lines = source.solved[path].data.splitlines() if path in source.solved else []
    yield from (lines[n - 1].strip() for n in source.added_lines(path))
