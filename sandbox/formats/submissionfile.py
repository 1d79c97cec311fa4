"""A submissions.jsonl held against a suite: everything that is wrong with it, not the first of it."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from sandbox.errors import SpecError
from sandbox.formats.patch import parse
from sandbox.formats.patchlines import PatchError
from sandbox.formats.records import MAX_LINE_BYTES, SubmissionLine, submissions


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    where: str
    """The file, or file:line."""
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    submissions: int
    """That are as they should be."""
    tasks: int
    """That they are of."""
    problems: tuple[Remark, ...]
    missing: tuple[str, ...]
    """Tasks of the suite without a submission."""
    notes: tuple[Remark, ...]
    """What will cost its maker the reward, and is no mistake of the file."""

    @property
    def good(self) -> bool:
        return not self.problems and not self.missing


def examine(
    path: Path, known: Collection[str], suite: Collection[str] | None = None, name: str = ""
) -> Examined:
    """`known`: all tasks; `suite`: those that are asked for, and its name. Raises SpecError."""
    problems: list[Remark] = []
    notes: list[Remark] = []
    counts: Counter[str] = Counter()
    for number, found in submissions(path):
        if isinstance(found, SpecError):
            problems.append(_remark(found))
            continue
        where = f"{path}:{number}"
        if stray := _stray(found.task, where, known, suite, name):
            problems.append(stray)
            continue
        counts[found.task] += 1
        notes += _unreadable(found, where)
    if not counts and not problems:
        problems.append(Remark(where=str(path), message="there is no submission in it"))
    notes += _uneven(path, counts)
    return Examined(
        submissions=counts.total(),
        tasks=len(counts),
        problems=tuple(problems),
        missing=tuple(task for task in suite or () if not counts[task]),
        notes=tuple(notes),
    )


def _remark(error: SpecError) -> Remark:
    return Remark(
        where=error.where, message=str(error).removeprefix(f"{error.where}: "), hint=error.hint
    )


def _stray(
    task: str, where: str, known: Collection[str], suite: Collection[str] | None, name: str
) -> Remark | None:
    if suite is not None and task in known and task not in suite:
        return Remark(where=where, message=f"`{task}` is no task of suite `{name}`")
    if task in known:
        return None
    near = get_close_matches(task, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else "`stillroom list` shows all tasks"
    return Remark(where=where, message=f"there is no task `{task}`", hint=hint)


def _unreadable(line: SubmissionLine, where: str) -> Iterator[Remark]:
    """A patch that no task can take; whether it fits is seen when it is graded."""
    if not line.data.strip():
        return
    try:
        parse(line.data, max_bytes=MAX_LINE_BYTES)
    except PatchError as e:
        yield Remark(where=where, message=f"its patch will be rejected: {e}")


def _uneven(path: Path, counts: Counter[str]) -> Iterator[Remark]:
    if len(set(counts.values())) > 1:
        most = max(counts.values())
        few = ", ".join(f"{task} {n}" for task, n in counts.items() if n < most)
        yield Remark(where=str(path), message=f"not {most} tries at each task: {few}")
