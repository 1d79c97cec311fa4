"""checks.yaml: the checks of a task by name, and the rules for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from sandbox.errors import SpecError
from sandbox.formats import yamlfile
from sandbox.formats.shape import schema_of
from sandbox.model.task import STRICT, CheckSpec

_MOST_WEIGHT = 1e9
"""Sums of weights stay far from what a float cannot hold."""
Broken = tuple[tuple[str | int, ...], str, str]
"""Where, what, hint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    id: str
    weight: float = 1.0
    accept: tuple[Literal["skipped", "xfailed", "xpassed"], ...] = ()
    """Outcomes that count as a pass, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepting:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    id: str
    accept: tuple[Literal["skipped", "xfailed", "xpassed"], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A test of the bundle that is no check, and why."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksFile:
    """verifiers/<task>/checks.yaml."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1]
    scored: tuple[str | Weighted, ...]
    """Each pass earns its weight (1 when not said). They fail before and pass after. What weighs
    0 earns nothing, and costs as much as what weighs 1 where it does not pass. Where all of them weigh
    0, the reward is all or nothing."""
    gates: tuple[str | Accepting, ...] = ()
    """These must go on passing: if one does not, the reward is 0."""
    excluded: tuple[Excluded, ...] = ()


def load_checks(path: Path) -> tuple[CheckSpec, ...]:
    """The named checks, scored ones first. Raises SpecError."""
    doc = yamlfile.open_document(path)
    raw = doc.parse(ChecksFile)
    for loc, message, hint in _check_rules(raw):
        raise SpecError(message, where=doc.where(loc), hint=hint)
    scored = (CheckSpec(id=_id(c), weight=_weight(c), accept=_accept(c)) for c in raw.scored)
    gates = (CheckSpec(id=_id(c), weight=0.0, gate=True, accept=_accept(c)) for c in raw.gates)
    return (*scored, *gates)


def check_lines(path: Path) -> dict[str, int]:
    """Every scored check and gate of a checks.yaml → the line on which it begins."""
    doc = yamlfile.open_document(path)
    raw = doc.parse(ChecksFile)
    groups = {"scored": [_id(c) for c in raw.scored], "gates": [_id(c) for c in raw.gates]}
    return {
        name: int(doc.where((group, i)).rpartition(":")[2])
        for group, names in groups.items()
        for i, name in enumerate(names)
    }


def checks_schema() -> dict[str, Any]:
    return schema_of(ChecksFile, "Stillroom checks")


def _id(check: str | Weighted | Accepting) -> str:
    return check if isinstance(check, str) else check.id


def _accept(check: str | Weighted | Accepting) -> tuple[str, ...]:
    return () if isinstance(check, str) else check.accept


def _weight(check: str | Weighted) -> float:
    return 1.0 if isinstance(check, str) else check.weight


def _check_rules(raw: ChecksFile) -> Iterator[Broken]:
    if not raw.scored:
        yield ("scored",), "at least one check has to be scored", ""
    seen: dict[str, str] = {}
    groups: tuple[tuple[str, list[str]], ...] = (
        ("scored", [_id(c) for c in raw.scored]),
        ("gates", [_id(c) for c in raw.gates]),
        ("excluded", [c.id for c in raw.excluded]),
    )
    for group, ids in groups:
        for i, name in enumerate(ids):
            if not name.strip():
                yield (group, i), "the id is empty", ""
            if name in seen:
                yield (group, i), f"`{name}` stands under `{seen[name]}` already", "remove one"
            seen[name] = group
    for i, check in enumerate(raw.scored):
        if not 0 <= _weight(check) <= _MOST_WEIGHT:
            yield ("scored", i), f"a weight should be 0 or more, {_MOST_WEIGHT:g} at most", ""
