"""Names that the hidden tests need, and nobody mentions to the agent. Pure."""

import ast
import re
from collections.abc import Iterable, Iterator

from sandbox.audit.source.trees import Source, parsed
from sandbox.formats.digest import Entry

_WORD = re.compile(rb"\w+")


def unsaid(
    source: Source, repository: Iterable[Entry], tests: Iterable[Entry], said: str
) -> list[str]:
    """What the reference solution brings, tests name, and neither repository nor instruction has."""
    known = {w for e in repository for w in _WORD.findall(e.data)}
    known |= set(_WORD.findall(said.encode()))
    brought = {w.decode() for p in source.modules for w in _WORD.findall(source.solved[p].data)}
    new = {w for w in brought if w.encode() not in known}
    return sorted(new.intersection(n for e in tests for n in _needed(e)))


def _needed(entry: Entry) -> Iterator[str]:
    """Attributes, imports, arguments by name: without them, a test cannot pass."""
    tree = parsed(entry)
    own = {getattr(n, "name", "") for n in ast.walk(tree)} if tree else set()
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)) if name not in own:
                yield name
            case ast.ImportFrom(names=names):
                yield from (n.name for n in names)
            case _:
                pass
