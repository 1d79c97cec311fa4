"""What several test functions use: tables, helpers, fixtures. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sandbox.audit.canary.literals import Function, TestFile
from sandbox.audit.canary.places import Literal

_MOST_USERS = 40
"""Functions that may have one coin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    name: str
    literals: tuple[Literal, ...]
    users: tuple[str, ...]
    """Functions whose tests an edit of it may change."""


def shared(
    files: Mapping[str, TestFile], functions: Mapping[str, Function], need: Collection[str]
) -> list[Shared]:
    """What a function of `need` uses, best first: nearly all of whose users are in need."""
    wanted = set(need)
    reached = {name: _reached(files[f.path], f) for name, f in functions.items()}
    found = []
    for path, holder in _holders(files, functions):
        users = [
            name
            for name, f in functions.items()
            if (f.path == path or path.endswith("conftest.py")) and holder.name in reached[name]
        ]
        if len(users) <= _MOST_USERS and wanted & set(users):
            share = len(wanted & set(users)) / len(users)
            made = Shared(name=holder.id, literals=holder.literals, users=tuple(users))
            found.append((-share, len(users), made.name, made))
    return [made for *_, made in sorted(found, key=lambda f: f[:3])]


def _holders(
    files: Mapping[str, TestFile], functions: Mapping[str, Function]
) -> Iterator[tuple[str, Function]]:
    for path, file in files.items():
        for holder in file.shared.values():
            if holder.id not in functions and holder.literals:
                yield path, holder


def _reached(file: TestFile, function: Function) -> set[str]:
    """Names that it uses, by way of what it uses, too."""
    names, todo = set(function.names), list(function.names)
    while todo:
        holder = file.shared.get(todo.pop())
        fresh = (holder.names - names) if holder else set()
        names |= fresh
        todo += fresh
    return names
