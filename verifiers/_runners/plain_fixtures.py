"""What tests ask for by name: found from near to far, made once for each scope, undone at its end."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from plain_ids import Row
from plain_standin import Fixture, LeftError, Mark

Makers = Mapping[str, Fixture]
_SCOPES = ("session", "package", "module", "class", "function")


@dataclass(eq=False, kw_only=True)
class Item:
    """A test as it is called: one check."""

    id: str
    name: str
    module: ModuleType
    kind: Any
    """Its class; None for a function."""
    attribute: str
    levels: list[Makers]
    """From far to near."""
    row: Row
    marks: list[Mark]
    """Nearest first."""
    instance: Any = None

    def makers(self, name: str) -> list[Fixture]:
        """Nearest first."""
        return [level[name] for level in reversed(self.levels) if name in level]

    def marked(self, name: str) -> Iterator[Mark]:
        return (mark for mark in self.marks if mark.name == name)


def makers_in(namespace: Mapping[str, Any]) -> dict[str, Fixture]:
    return {
        made.name or name: made for name, made in namespace.items() if isinstance(made, Fixture)
    }


def asked(function: Callable[..., Any], *, bound: bool) -> list[str]:
    """Names of what it has to be given."""
    wanted = [
        p.name
        for p in inspect.signature(function, follow_wrapped=False).parameters.values()
        if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY} and p.default is p.empty
    ]
    return wanted[1:] if bound else wanted


def is_bound(made: Fixture) -> bool:
    names = list(inspect.signature(made.function).parameters)
    return names[:1] == ["self"]


def closure(levels: list[Makers], names: Iterable[str]) -> list[str]:
    """All that is made for one that asks for these, widest scope first."""
    auto = [n for level in levels for n, made in level.items() if made.autouse]
    found = list(dict.fromkeys([*auto, *names]))
    for name in found:  # grows meanwhile
        made = nearest(levels, name)
        if made is not None:
            wanted = asked(made.function, bound=is_bound(made))
            found += [n for n in wanted if n not in found]
    return sorted(found, key=lambda name: _rank(nearest(levels, name)))


def nearest(levels: list[Makers], name: str) -> Fixture | None:
    return next((level[name] for level in reversed(levels) if name in level), None)


def _rank(made: Fixture | None) -> int:
    scope = made.scope if made else "function"
    return _SCOPES.index(scope) if scope in _SCOPES else len(_SCOPES) - 1


@dataclass
class Stage:
    """What there is as long as one scope lasts."""

    about: Any
    made: dict[Any, Any] = field(default_factory=dict)
    undone_by: list[Callable[[], Any]] = field(default_factory=list)

    def end(self) -> list[BaseException]:
        """Undoes it, last things first; tells what went wrong."""
        wrong = []
        while self.undone_by:
            try:
                self.undone_by.pop()()
            except BaseException as e:
                wrong.append(e)
        self.made.clear()
        return wrong


class Request:
    """What a fixture can ask of whoever it is made for."""

    def __init__(self, stages: "Stages", item: Item, name: str, stage: Stage) -> None:
        self._stages, self._item, self._stage = stages, item, stage
        self.fixturename, self.node = name, Node(item)
        self.cls, self.module, self.instance = item.kind, item.module, item.instance
        if name in item.row.params:
            self.param = item.row.params[name]

    @property
    def function(self) -> Any:
        return getattr(self._item.kind or self._item.module, self._item.attribute)

    def addfinalizer(self, finalizer: Callable[[], Any]) -> None:
        self._stage.undone_by.append(finalizer)

    def getfixturevalue(self, name: str) -> Any:
        return self._stages.value(self._item, name)

    def __getattr__(self, name: str) -> Any:
        if name == "param" or name.startswith("__"):
            raise AttributeError(name)
        raise LeftError(f"request.{name} is not there")


class Node:
    """`request.node`."""

    def __init__(self, item: Item) -> None:
        self._item = item
        self.name, self.nodeid, self.originalname = item.name, item.id, item.attribute

    def get_closest_marker(self, name: str, default: Any = None) -> Any:
        return next(self._item.marked(name), default)

    def iter_markers(self, name: str) -> Iterator[Mark]:
        return self._item.marked(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise LeftError(f"request.node.{name} is not there")


class Stages:
    """The scopes of the test that is being run, widest first."""

    def __init__(self) -> None:
        self._open: dict[str, Stage] = {}

    def stage(self, item: Item, scope: str) -> Stage:
        scope = {"package": "module"}.get(scope, scope)
        about = {"session": None, "module": item.module, "class": item.kind, "function": item}
        if scope not in about:
            raise LeftError(f"there is no scope {scope}")
        if scope not in self._open:
            self._open[scope] = Stage(about[scope])
        return self._open[scope]

    def leave(self, following: Item | None) -> list[BaseException]:
        """Ends what the following test is not part of."""
        wrong: list[BaseException] = []
        for scope in ("function", "class", "module", "session"):
            stage = self._open.get(scope)
            if stage and (following is None or not _within(following, scope, stage.about)):
                wrong += stage.end()
                del self._open[scope]
        return wrong

    def value(self, item: Item, name: str, depth: int = 0) -> Any:
        """depth: how many nearer ones of that name are passed over."""
        if name in item.row.arguments:
            return item.row.arguments[name]
        if name == "request":
            return Request(self, item, name, self.stage(item, "function"))
        makers = item.makers(name)
        if len(makers) <= depth:
            raise LeftError(f"there is no fixture {name}")
        made = makers[depth]
        stage = self.stage(item, made.scope)
        key = (id(made), tuple(sorted(item.row.places.items())))
        if key not in stage.made:
            stage.made[key] = _attempt(lambda: self._make(item, name, depth, stage))
        value, error = stage.made[key]
        if error is not None:
            raise error
        return value

    def _make(self, item: Item, name: str, depth: int, stage: Stage) -> Any:
        made = item.makers(name)[depth]
        given: dict[str, Any] = {}
        bound = is_bound(made)
        for wanted in asked(made.function, bound=bound):
            if wanted == "request":
                given[wanted] = Request(self, item, name, stage)
            else:
                given[wanted] = self.value(item, wanted, depth + 1 if wanted == name else 0)
        if inspect.iscoroutinefunction(made.function) or inspect.isasyncgenfunction(made.function):
            raise LeftError(f"fixture {name} is asynchronous")
        first = (item.instance,) if bound else ()
        if not inspect.isgeneratorfunction(made.function):
            return made.function(*first, **given)
        steps = made.function(*first, **given)
        value = next(steps)
        stage.undone_by.append(lambda: next(steps, None))
        return value


def _attempt(make: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return make(), None
    except BaseException as e:
        return None, e


def _within(item: Item, scope: str, about: Any) -> bool:
    now = {"session": None, "module": item.module, "class": item.kind, "function": item}
    return now[scope] is about
