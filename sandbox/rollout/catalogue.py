"""Where tasks are found, and which of them a name means."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Literal

from sandbox.errors import NothingSelected, SpecError, UserError
from sandbox.formats import yamlfile
from sandbox.formats.home import bundled_home
from sandbox.formats.taskfile import load_task
from sandbox.model.suite import Suite, select
from sandbox.model.task import STRICT, TaskId, TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitesFile:
    """task_specs/suites.yaml."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1]
    suites: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name → task ids, in order."""


class Catalogue:
    """The tasks of some homes: folders with task_specs/, verifiers/ and repos/."""

    def __init__(self, homes: tuple[Path, ...]) -> None:
        self._homes = homes

    def tasks(self) -> dict[TaskId, Path]:
        """Every task id and its home; the first home that has it wins."""
        found: dict[TaskId, Path] = {}
        for home in self._homes:
            for path in sorted((home / "task_specs").glob("*/task.yaml")):
                found.setdefault(TaskId(path.parent.name), home)
        return found

    def suites(self) -> dict[str, Suite]:
        found: dict[str, Suite] = {}
        for home in self._homes:
            path = home / "task_specs" / "suites.yaml"
            if not path.exists():
                continue
            document = yamlfile.open_document(path)
            for name, ids in document.parse(SuitesFile).suites.items():
                tasks = tuple(TaskId(i) for i in ids)
                for i, task in enumerate(tasks):
                    if not (home / "task_specs" / task / "task.yaml").exists():
                        raise SpecError(
                            f"there is no task `{task}`", where=document.where(("suites", name, i))
                        )
                found.setdefault(name, Suite(name=name, tasks=tasks))
        return found

    def suite(self, name: str) -> Suite:
        """Raises UserError."""
        suites = self.suites()
        if name not in suites:
            known = ", ".join(sorted(suites)) or "none"
            raise UserError(f"there is no suite `{name}`", hint=f"known: {known}")
        return suites[name]

    def load(self, task: TaskId) -> TaskSpec:
        """Raises SpecError for a bad spec, UserError for an unknown task."""
        home = self.tasks().get(task)
        if home is None:
            raise self._unknown(task)
        return load_task(home, task)

    def choose(self, suite: str | None, patterns: tuple[str, ...]) -> list[TaskSpec]:
        """The tasks of a suite, or all; of those, the ones that match any of the patterns."""
        if suite is None and not patterns:
            raise NothingSelected("no task was named", hint="name tasks, or use --suite core")
        candidates = tuple(self.tasks())
        if suite is not None:
            candidates = self.suite(suite).tasks
        for pattern in patterns:
            if not select(candidates, (pattern,)):
                if any(c in pattern for c in "*?["):
                    raise NothingSelected(f"no task matches `{pattern}`", hint="see stillroom list")
                raise self._unknown(TaskId(pattern))
        return [self.load(t) for t in select(candidates, patterns)]

    def _unknown(self, task: TaskId) -> UserError:
        near = get_close_matches(task, self.tasks(), n=1)
        hint = f"did you mean `{near[0]}`?" if near else "`stillroom list` shows all tasks"
        return UserError(f"there is no task `{task}`", hint=hint)


def default_homes(here: Path, more: list[Path]) -> tuple[Path, ...]:
    """The folder one is in, if it has tasks; then what came along."""
    own = [here] if (here / "task_specs").is_dir() else []
    homes = [*own, *more, bundled_home()]
    return tuple(dict.fromkeys(h.resolve() for h in homes))
