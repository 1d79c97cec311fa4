"""A suite that runs without a box or a test runner: what `Search` is told of edited tests."""

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sandbox.formats.digest import Entry
from sandbox.grading.variants import edited
from sandbox.model.layers import Edit
from sandbox.model.verdict import CheckReport, Outcome, Ran, Seen


class MiniSuite:
    """Functions named `test…` of modules, their rows, and what they find in `given`."""

    def __init__(self, files: dict[str, str], **given: Any) -> None:
        self.entries = [Entry(path, "file", text.encode()) for path, text in files.items()]
        self.given = given
        self.runs: list[tuple[str, ...]] = []
        """What was asked for each time."""

    def __call__(self, edits: Sequence[Edit], *, paths: Sequence[str] = ()) -> Seen:
        self.runs.append(tuple(paths))
        report: dict[str, CheckReport] = {}
        for entry in edited(self.entries, edits):
            if not entry.path.endswith(".py"):
                continue
            space: dict[str, Any] = {"pytest": _Pytest, **self.given}
            try:
                exec(compile(ast.parse(entry.data), entry.path, "exec"), space)
            except Exception:  # noqa: BLE001 - it could not be collected
                continue
            for item, act in _items(entry.path, space):
                if not paths or item.partition("[")[0] in paths or entry.path in paths:
                    report[item] = _outcome(act)
        return Seen(ran=Ran.FINISHED, report=report)


class _Mark:
    @staticmethod
    def parametrize(names: str, rows: Sequence[Any]) -> Callable[[Any], Any]:
        def mark(function: Any) -> Any:
            function.rows = [*getattr(function, "rows", []), (names.split(","), rows)]
            return function

        return mark


class _Pytest:
    mark = _Mark


def _items(path: str, space: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    for name, found in space.items():
        if not name.startswith("test"):
            continue
        cases: list[dict[str, Any]] = [{}]
        for names, rows in getattr(found, "rows", []):
            wide = [row if len(names) > 1 else (row,) for row in rows]
            cases = [c | dict(zip(names, row, strict=True)) for c in cases for row in wide]
        for case in cases:
            row = f"[{'-'.join(map(str, case.values()))}]" if case else ""
            yield f"{path}::{name}{row}", lambda found=found, case=case: found(**case)  # type: ignore[misc]


def _outcome(act: Callable[[], Any]) -> CheckReport:
    try:
        act()
    except Exception as e:  # noqa: BLE001 - whatever a test ends with
        return CheckReport(outcome=Outcome.FAILED, message=f"{type(e).__name__}: {e}")
    return CheckReport(outcome=Outcome.PASSED)
