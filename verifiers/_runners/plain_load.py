"""Hidden test modules, executed from their source where there is no test runner.

What they import as pytest is a stand-in in their own namespace. The code under test finds none: no
module, no frame, no file name, no function that is called like a test.
"""

import builtins
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from plain_standin import LeftError, StandIn

BLOCKED = frozenset({"pytest", "_pytest", "pluggy"})
_FILE, _FUNCTION = "main.py", "job"
"""What frames of hidden tests are called by: nothing that a program would not be."""


def plainly(code: CodeType, *, named: bool = False) -> CodeType:
    """With another file name, and with no function in it that is called like a test.

    named: by a module or a class, where tests are.
    """
    # What is made within a function is no test, and its name may matter.
    outside = not code.co_flags & inspect.CO_OPTIMIZED
    consts = tuple(
        plainly(c, named=outside) if isinstance(c, CodeType) else c for c in code.co_consts
    )
    more = {}
    if named and code.co_name.startswith("test"):
        more = {"co_name": _FUNCTION}
        if hasattr(code, "co_qualname"):
            more["co_qualname"] = _FUNCTION
    return code.replace(co_consts=consts, co_filename=_FILE, **more)  # type: ignore[arg-type]


class _Source(SourceFileLoader):
    """From source, whatever lies beside it."""

    def __init__(self, name: str, path: str, given: Mapping[str, Any]) -> None:
        super().__init__(name, path)
        self._given = given

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code = compile(self.get_data(path), path, "exec", dont_inherit=True)
        return plainly(code)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = dict(self._given)
        exec(self.get_code(module.__name__), module.__dict__)


class Finder(MetaPathFinder):
    """Finds hidden tests for the stand-in's sake, and no test runner for anybody."""

    def __init__(self, places: Sequence[Path], standin: StandIn, more: Mapping[str, Any]) -> None:
        """places: of the hidden tests; nothing else is given a stand-in."""
        self._places = places
        self._standin = standin
        self._import: Callable[..., Any] = builtins.__import__
        self._given = {**vars(builtins), **more, "__import__": self._imported}

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        spec = PathFinder.find_spec(fullname, path, target)
        if (
            spec
            and type(spec.loader) is SourceFileLoader
            and spec.origin
            and self.ours(spec.origin)
        ):
            spec.loader = _Source(fullname, spec.origin, self._given)
            spec.cached = None
            return spec
        return None

    def ours(self, path: str) -> bool:
        """A conftest.py elsewhere is pinned, or the supervisor has removed it."""
        file = Path(path)
        return file.name == "conftest.py" or any(file.is_relative_to(p) for p in self._places)

    def _imported(
        self,
        name: str,
        globals: Any = None,  # noqa: A002
        locals: Any = None,  # noqa: A002
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        if level == 0 and name.partition(".")[0] in BLOCKED:
            return self._standin
        try:
            return self._import(name, globals, locals, fromlist, level)
        except ModuleNotFoundError as e:
            if (e.name or "").partition(".")[0] not in BLOCKED:
                raise
            # A plugin of the test runner: who really uses it is left.
            return self._standin


def load(path: Path) -> ModuleType:
    """Under the name that it has with pytest, whose `rootdir` and `prepend` are the usual ones."""
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").exists():
        names.insert(0, root.name)
        root = root.parent
    if names[-1] == "__init__":
        names.pop()
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    name = ".".join(names)
    known = sys.modules.get(name)
    if name == "conftest" and known is not None:
        del sys.modules[name]
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise LeftError(f"another module is called {name}")
    return module
