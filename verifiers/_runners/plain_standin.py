"""What hidden tests get when they import pytest and there is none: enough of it, and no more.

It is bound in the namespaces of test modules only; nothing of this name is in `sys.modules`.
"""

import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

MARKS = "_marks"
"""Of a test function or class: its marks, the one that was put there first in front."""


class LeftError(BaseException):
    """The test needs what there is not. No `except Exception` of a test hides it."""


class SkippedError(BaseException):
    """As pytest has it: not an Exception, so that a test cannot take it for one."""


class FailedError(BaseException):
    """`pytest.fail`, or something that should have been raised and was not."""


class XFailedError(FailedError):
    """`pytest.xfail`."""


class Mark:
    """A mark and its arguments; marks what it is called with."""

    def __init__(self, name: str, args: tuple[Any, ...] = (), kwargs: Any = None) -> None:
        self.name, self.args, self.kwargs = name, args, dict(kwargs or {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bare = not self.args and not self.kwargs and not kwargs and len(args) == 1
        if bare and (isinstance(args[0], type) or _is_function(args[0])):
            return self.put_on(args[0])
        return Mark(self.name, self.args + args, {**self.kwargs, **kwargs})

    def put_on(self, target: Any) -> Any:
        own = target.__dict__.get(MARKS, [])
        setattr(target, MARKS, [*own, self])
        return target

    @property
    def mark(self) -> "Mark":
        return self


class _WithArguments(Mark):
    """One that was called: what it is called with next is what it marks."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            return self.put_on(args[0])
        return Mark.__call__(self, *args, **kwargs)


class _MarkMaker:
    def __getattr__(self, name: str) -> Any:
        return _Named(name)


class _Named(Mark):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = Mark.__call__(self, *args, **kwargs)
        return _WithArguments(made.name, made.args, made.kwargs) if type(made) is Mark else made


def _is_function(thing: Any) -> bool:
    return callable(thing) and hasattr(thing, "__code__") and thing.__name__ != "<lambda>"


class Param:
    """A row of `parametrize`."""

    def __init__(self, *values: Any, marks: Any = (), id: Any = None) -> None:  # noqa: A002
        self.values = values
        self.marks = list(marks) if isinstance(marks, list | tuple) else [marks]
        self.id = id


class Fixture:
    """A function that makes what tests ask for by name."""

    def __init__(self, function: Callable[..., Any], **told: Any) -> None:
        self.function = function
        self.name: str = told.get("name") or ""
        """Empty: what it is bound to."""
        self.scope: str = told.get("scope") or "function"
        params = told.get("params")
        self.params: list[Any] | None = None if params is None else list(params)
        self.autouse = bool(told.get("autouse"))
        self.ids: Any = told.get("ids")
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise LeftError(f"fixture {self.__name__} is called as a function")


def fixture(function: Any = None, /, **told: Any) -> Any:
    if function is not None:
        return Fixture(function, **told)
    return lambda given: Fixture(given, **told)


class Caught:
    """What `raises` caught."""

    value: Any = None
    tb: Any = None

    @property
    def type(self) -> Any:
        return type(self.value)

    @property
    def traceback(self) -> Any:
        raise LeftError("excinfo.traceback is not there")

    @property
    def typename(self) -> str:
        return type(self.value).__name__

    def match(self, pattern: Any) -> bool:
        if not re.search(pattern, str(self.value)):
            raise AssertionError("the exception's text does not match")
        return True

    def errisinstance(self, kinds: Any) -> bool:
        return isinstance(self.value, kinds)


class _Raises:
    def __init__(self, kinds: Any, match: Any, check: Any = None) -> None:
        self._kinds, self._match, self._check = kinds, match, check
        self._caught = Caught()

    def __enter__(self) -> Caught:
        return self._caught

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if kind is None:
            raise FailedError("nothing was raised")
        if not issubclass(kind, self._kinds):
            return False
        self._caught.value, self._caught.tb = value, trace
        if self._match is not None:
            self._caught.match(self._match)
        if self._check is not None and not self._check(value):
            raise AssertionError("the exception is another one")
        return True


def raises(kinds: Any = BaseException, *args: Any, **kwargs: Any) -> Any:
    if not args:
        return _Raises(kinds, kwargs.get("match"), kwargs.get("check"))
    caught = _Raises(kinds, None)
    with caught as found:
        args[0](*args[1:], **kwargs)
    return found


class Warned:
    """Warnings that were made meanwhile; some of these kinds are expected, if there are kinds."""

    def __init__(self, kinds: Any = None, match: Any = None) -> None:
        self._caught = warnings.catch_warnings(record=True)
        self._kinds, self._pattern = kinds, match
        self.list: list[warnings.WarningMessage] = []

    def __enter__(self) -> Self:
        self.list = self._caught.__enter__()
        warnings.simplefilter("always")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._caught.__exit__(kind, value, trace)
        if self._kinds is None or kind is not None:
            return
        fits = [w for w in self.list if issubclass(w.category, self._kinds)]
        if self._pattern is not None:
            fits = [w for w in fits if re.search(self._pattern, str(w.message))]
        if not fits:
            raise FailedError("no such warning")

    def __iter__(self) -> Any:
        return iter(self.list)

    def __len__(self) -> int:
        return len(self.list)

    def __getitem__(self, place: int) -> warnings.WarningMessage:
        return self.list[place]

    def pop(self, kind: type[Warning] = Warning) -> warnings.WarningMessage:
        for place, warning in enumerate(self.list):
            if issubclass(warning.category, kind):
                return self.list.pop(place)
        raise AssertionError("no such warning")

    def clear(self) -> None:
        self.list[:] = []


def warns(kinds: Any = Warning, *args: Any, match: Any = None, **kwargs: Any) -> Any:
    if not args:
        return Warned(kinds, match)
    with Warned(kinds, match):
        return args[0](*args[1:], **kwargs)


def deprecated_call(*args: Any, **kwargs: Any) -> Any:
    kinds = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
    return warns(kinds, *args, **kwargs)


class Approx:
    """Equal to what is near."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: Any = None, *more: Any, **told: Any) -> None:
        self._expected, self._rel = expected, rel
        self._abs, self._nan_ok = (*more, None)[0], bool((*more, None, False)[1])
        self._abs, self._nan_ok = told.get("abs", self._abs), told.get("nan_ok", self._nan_ok)

    def __eq__(self, other: object) -> bool:
        return self._near(self._expected, other)

    def _near(self, expected: Any, actual: Any) -> bool:
        if isinstance(expected, Mapping):
            same = isinstance(actual, Mapping) and expected.keys() == actual.keys()
            return same and all(self._near(v, actual[k]) for k, v in expected.items())
        if isinstance(expected, Sequence) and not isinstance(expected, str | bytes):
            pairs = zip(expected, actual, strict=False)
            return len(expected) == len(actual) and all(self._near(e, a) for e, a in pairs)
        if expected == actual:
            return True
        if isinstance(expected, bool) or not isinstance(expected, int | float | complex):
            if hasattr(expected, "__float__") and hasattr(actual, "__sub__"):
                return bool(abs(expected - actual) <= self._within(expected))
            return False
        return self._number(expected, actual)

    def _number(self, expected: Any, actual: Any) -> bool:
        if not isinstance(expected, complex) and math.isnan(expected):
            return self._nan_ok and math.isnan(actual)
        if math.isinf(abs(expected)):
            return False
        return bool(abs(expected - actual) <= self._within(expected))

    def _within(self, expected: Any) -> Any:
        absolute = 1e-12 if self._abs is None else self._abs
        if self._rel is None and self._abs is not None:
            return absolute
        return max((1e-6 if self._rel is None else self._rel) * abs(expected), absolute)


def skip(reason: str = "", **_: Any) -> Any:
    raise SkippedError(reason)


def fail(reason: str = "", **_: Any) -> Any:
    raise FailedError(reason)


def xfail(reason: str = "") -> Any:
    raise XFailedError(reason)


def importorskip(name: str, *_: Any, **__: Any) -> Any:
    import importlib  # noqa: PLC0415

    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise SkippedError(str(e)) from None


class _Unknown(type):
    """A class that is only named, as in annotations; not one to be used."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise LeftError(f"{cls.__name__} is not there")

    def __getitem__(cls, _: Any) -> Any:
        return cls


def unknown(name: str) -> Any:
    return _Unknown(name, (), {})


class StandIn:
    """Bound to the name that a test imports pytest as."""

    __name__ = "standin"
    __version__ = "8"
    version_tuple = (8, 0, 0)
    mark = _MarkMaker()
    param, fixture, raises = Param, staticmethod(fixture), staticmethod(raises)
    warns, deprecated_call = staticmethod(warns), staticmethod(deprecated_call)
    approx, fail, skip = Approx, staticmethod(fail), staticmethod(skip)
    xfail, importorskip = staticmethod(xfail), staticmethod(importorskip)
    WarningsRecorder = Warned
    ExceptionInfo = Caught
    yield_fixture = staticmethod(fixture)

    def __init__(self, **more: Any) -> None:
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("Pytest") and name.endswith("Warning"):
            return type(name, (UserWarning,), {})
        if name[:1].isupper():
            return unknown(name)
        if name in {"hookimpl", "hookspec"}:
            return lambda function=None, **_: function or (lambda given: given)
        if name.startswith("__"):
            raise AttributeError(name)
        return self._left(name)

    def _left(self, name: str) -> Any:
        def left(*_: Any, **__: Any) -> Any:
            raise LeftError(f"pytest.{name} is not there")

        return left


def marks_of(thing: Any) -> list[Mark]:
    """Its own marks, and for a class those of its bases, too."""
    if not isinstance(thing, type):
        return list(getattr(thing, MARKS, []))
    found: list[Mark] = []
    for kind in thing.__mro__:
        found += kind.__dict__.get(MARKS, [])
        found += as_marks(kind.__dict__.get("pytestmark", []))
    return found


def as_marks(told: Any) -> list[Mark]:
    many: Iterable[Any] = told if isinstance(told, list | tuple) else [told]
    return [mark for mark in many if isinstance(mark, Mark)]
