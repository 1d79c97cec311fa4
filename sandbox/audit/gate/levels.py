"""Which trials are made, at each level of the gate. Pure."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from sandbox.audit.gate.trials import Trial
from sandbox.audit.mutants.knockout import knockouts
from sandbox.audit.mutants.sites import mutants
from sandbox.audit.source.trees import Files, Source
from sandbox.audit.variations.kinds import CONTROLS, KINDS, variations
from sandbox.model.conditions import Conditions
from sandbox.model.task import TaskSpec

Level = Literal["quick", "usual", "full"]
T = TypeVar("T")
BARE = Conditions(layers="none")
REFERENCE, BARELY, NOTHING, ORDER, ALONE = (
    "reference",
    "reference, bare",
    "nothing",
    "order",
    "alone",
)
HUNK, KNOCKOUT, MUTANT, CONTROL = "without", "knock-out", "mutant", "control"


_ORDERS = (-1, 1, 2, 3)
"""The other way round, and as drawn with these seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many of each; the agents' own two runs come on top."""

    references: int = 1
    nothings: int = 0
    orders: int = 0
    alone: int = 0
    hunks: int = 0
    knockouts: int = 0
    mutants: int = 0
    controls: tuple[str, ...] = ()


SIZES: dict[Level, Sizes] = {
    "quick": Sizes(),
    "usual": Sizes(
        references=2, nothings=2, orders=1, alone=2, hunks=6, knockouts=6, controls=CONTROLS[:3]
    ),
    "full": Sizes(
        references=5, nothings=5, orders=4, alone=8, hunks=40, knockouts=40, mutants=25,
        controls=tuple(k.name for k in KINDS),
    ),
}  # fmt: skip


def first_trials(task: TaskSpec, source: Source, sizes: Sizes) -> Iterator[Trial]:
    """What the task itself is worth: the second ones depend on what these show."""
    for number in range(1, sizes.references + 1):
        yield Trial(name=f"{REFERENCE} {number}", files=source.solved, repeat=number)
    if sizes.nothings:
        yield Trial(name=BARELY, files=source.solved, conditions=BARE)
    for number in range(1, sizes.nothings + 1):
        yield Trial(name=f"{NOTHING} {number}", files=source.base, conditions=BARE, repeat=number)
    for number, seed in enumerate(_ORDERS[: sizes.orders], 1):
        conditions = Conditions(layers="none", order=seed)
        yield Trial(name=f"{ORDER} {number}", files=source.solved, conditions=conditions)
    for check in drawn([c.id for c in task.verifier.checks], sizes.alone):
        yield Trial(name=f"{ALONE}: {check}", files=source.solved, conditions=BARE, only=check)
    for varied in variations(source, sizes.controls) if sizes.controls else ():
        yield Trial(name=f"{CONTROL}: {varied.kind}", files=varied.files)


def wrong_trials(
    source: Source, sizes: Sizes, *, seconds: float, without: tuple[str, ...] | None
) -> Iterator[Trial]:
    """Each has to fail something. without: see Trial; None: a run cannot end early."""
    for name, files in wrong_ones(source, sizes):
        yield Trial(
            name=name,
            files=files,
            conditions=BARE,
            first_failure=without is not None,
            without=without or (),
            seconds=seconds,
        )


def wrong_ones(source: Source, sizes: Sizes) -> Iterator[tuple[str, Files]]:
    for hunk in drawn(source.hunks, sizes.hunks):
        yield f"{HUNK} {hunk.name}", source.without([hunk])
    for knocked in drawn(knockouts(source) if sizes.knockouts else (), sizes.knockouts):
        yield f"{KNOCKOUT} {knocked.name}", knocked.files
    for mutant in mutants(source, sizes.mutants) if sizes.mutants else ():
        yield f"{MUTANT} {mutant.id} {mutant.said}", mutant.files


def drawn(found: Sequence[T], most: int) -> list[T]:
    """So many of them, the same ones each time, in their order."""
    if len(found) <= most:
        return list(found)
    chosen = sorted(found, key=lambda x: hashlib.sha256(str(x).encode()).digest())[:most]
    return [x for x in found if x in chosen]
