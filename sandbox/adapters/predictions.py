"""Predictions against a data set: what is to be graded here, and the answer to all the others.

Nothing is made ready for a prediction that says nothing or cannot be read: an empty patch costs a
line.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from sandbox.adapters.swebenchrules import MOST_PATCH_BYTES, task_id
from sandbox.adapters.taskhome import SOLUTION, origin_of
from sandbox.formats import jsonfile
from sandbox.formats.patch import parse
from sandbox.formats.patchlines import PatchError
from sandbox.formats.records import SubmissionLine
from sandbox.formats.swebench import (
    Dataset,
    Instance,
    Prediction,
    Predictions,
    read_dataset,
    read_predictions,
)
from sandbox.model.task import STRICT, TaskId, TaskSpec

GOLD = "gold"
ANSWERS = "answers.json"
"""In a run's folder: what was said to the predictions that were not graded."""
Kind = Literal["empty", "malformed", "not here", "unknown", "unreadable"]
BAD_INPUT: frozenset[Kind] = frozenset({"unknown", "unreadable"})
"""These are wrong in the file itself, and no answer of a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """To a prediction that is not graded."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    instance_id: str
    model: str
    where: str
    kind: Kind
    why: str
    null: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """answers.json."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1] = 1
    dataset: str
    instances: tuple[str, ...]
    """All ids of the data set."""
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedOut:
    answers: Answers
    lines: tuple[SubmissionLine, ...]
    """What is to be graded: agent is the model."""
    tasks: Mapping[TaskId, TaskSpec]
    repeated: int = 0
    """Predictions that say again what another one says."""

    @property
    def counts(self) -> dict[str, int]:
        """Each prediction is in one place: `predictions` is the sum of the others."""
        kinds = Counter[str](a.kind for a in self.answers.answers)
        parts = {"graded": len(self.lines), **kinds, "said twice": self.repeated}
        return {"predictions": sum(parts.values()), **{k: n for k, n in parts.items() if n}}


def sort_out(
    file: Path,
    dataset: Path,
    homes: Mapping[TaskId, Path],
    load: Callable[[TaskId], TaskSpec],
) -> SortedOut:
    """file: predictions, or `gold` for the data set's own solutions. Raises SpecError.

    homes: where the tasks lie that are here. load: reads one of them.
    """
    data = read_dataset(dataset)
    gold = str(file) == GOLD and not file.exists()
    given = _gold(data, homes) if gold else read_predictions(file)
    known = {i.instance_id: i for i in data.instances}
    answers = [
        Answer(instance_id=r.instance_id, model="", where=r.where, kind="unreadable", why=r.why)
        for r in given.refused
    ]
    wanted: list[Prediction] = []
    for one in given.read:
        if answer := _answer(one, known, homes):
            answers.append(answer)
        else:
            wanted.append(one)
    return SortedOut(
        answers=Answers(dataset=str(dataset), instances=tuple(known), answers=tuple(answers)),
        lines=tuple(_lines(wanted)),
        repeated=given.repeated,
        tasks={name: load(name) for name in dict.fromkeys(task_id(p.instance_id) for p in wanted)},
    )


def _gold(data: Dataset, homes: Mapping[TaskId, Path]) -> Predictions:
    """What resolves each instance, as a prediction."""
    return Predictions(
        read=tuple(
            Prediction(
                instance_id=i.instance_id, model=GOLD, patch=_solution(i, homes), where=i.where
            )
            for i in data.instances
        )
    )


def _solution(instance: Instance, homes: Mapping[TaskId, Path]) -> str:
    """Of SWE-smith it is known once the instance is a task: its data only tell the bug."""
    if not instance.inverted:
        return instance.patch
    name = task_id(instance.instance_id)
    path = homes.get(name, Path("/nonexistent")) / "task_specs" / name / SOLUTION
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else instance.patch


def _answer(
    one: Prediction, known: Mapping[str, Instance], homes: Mapping[TaskId, Path]
) -> Answer | None:
    """None: it is to be graded."""

    def answer(kind: Kind, why: str) -> Answer:
        return Answer(
            instance_id=one.instance_id, model=one.model, where=one.where, kind=kind, why=why,
            null=one.null,
        )  # fmt: skip

    if one.instance_id not in known:
        return answer("unknown", f"`{one.instance_id}` is not in the data set")
    if one.empty:
        return answer("empty", "there is no patch" if one.null else "the patch is empty")
    try:
        parse(one.patch.encode(), max_bytes=MOST_PATCH_BYTES)
    except PatchError as e:
        return answer("malformed", str(e))
    name = task_id(one.instance_id)
    home = homes.get(name)
    if home is None or origin_of(home, name).get("instance_id") != one.instance_id:
        return answer("not here", "it is no task here: stillroom import swebench says why")
    return None


def _lines(wanted: Iterable[Prediction]) -> Iterable[SubmissionLine]:
    """Each model's patch for the same instance is another attempt at it."""
    attempts: dict[str, int] = {}
    for one in wanted:
        attempt = attempts.get(one.instance_id, 0)
        attempts[one.instance_id] = attempt + 1
        name = task_id(one.instance_id)
        yield SubmissionLine(task=name, patch=one.patch, agent=one.model, attempt=attempt)


def write_answers(run: Path, answers: Answers) -> None:
    jsonfile.write(run / ANSWERS, jsonfile.dumps(answers))


def read_answers(run: Path) -> Answers | None:
    """None: it is no run that graded predictions. Raises SpecError."""
    path = run / ANSWERS
    return jsonfile.load(path, Answers) if path.exists() else None
