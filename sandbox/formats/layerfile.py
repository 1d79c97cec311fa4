"""canaries.json and plain.json: what a task's layers were found to be, if that is what it pins."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from sandbox.errors import SpecError, VerifierFault
from sandbox.formats import jsonfile
from sandbox.formats.shape import plain
from sandbox.model.layers import BARE, Canaries, Layers, Plain
from sandbox.model.task import Digest, TaskSpec

CANARIES, PLAIN = "canaries.json", "plain.json"
"""Under verifiers/<task>/."""
_LEFT_OUT = {"loose", "others", "more", "uncovered", "sites", "left"}
"""Fields that are not written when they are empty."""
T = TypeVar("T", Canaries, Plain)


def load_layers(task: TaskSpec) -> Layers:
    """What the verdicts on this task rest on. Raises SpecError, or VerifierFault for another file."""
    spec = task.verifier
    if not spec.layers:
        return BARE
    found = None
    if {"withheld", "plain"} & set(spec.layers):
        found = _load(task, PLAIN, spec.plain, Plain)
    layers = Layers(
        canaries=_load(task, CANARIES, spec.canaries, Canaries)
        if "canary" in spec.layers
        else None,
        withheld=found if "withheld" in spec.layers else None,
        plain=found if "plain" in spec.layers else None,
    )
    _require_something(task, layers)
    if layers.canaries:
        _require_apart(task, layers.canaries)
    return layers


def _require_apart(task: TaskSpec, canaries: Canaries) -> None:
    """A canary that edits nothing, or tells of other checks, would be an honest answer's loss."""
    for unit, number, wrong in _amiss(canaries):
        raise SpecError(
            f"canary {number} of unit `{unit}` {wrong}",
            where=str(layer_path(task, CANARIES)),
            hint=f"find them again: stillroom lock checks {task.id}",
        )


def _amiss(canaries: Canaries) -> Iterator[tuple[str, int, str]]:
    """Unit, number of its canary, what is wrong."""
    names = Counter(unit.name for unit in canaries.units)
    for unit in canaries.units:
        for number, canary in enumerate(unit.canaries):
            if not canary.edits:
                yield unit.name, number, "edits nothing"
            elif canary.checks.keys() != unit.checks.keys():
                yield unit.name, number, "tells of other checks than the unit's"
            elif names[unit.name] > 1:
                yield unit.name, number, "is of one of several units of that name"


def _require_something(task: TaskSpec, layers: Layers) -> None:
    """A layer that asks for nothing is one that everything passes."""
    empty = {
        CANARIES: layers.canaries is not None and not layers.canaries.canary_of(),
        PLAIN: (layers.plain is not None and not layers.plain.checks)
        or (layers.withheld is not None and not layers.withheld.sites),
    }
    for name, nothing in empty.items():
        if nothing:
            raise SpecError(
                "a layer that the task names has nothing in it",
                where=str(layer_path(task, name)),
                hint=f"find them again: stillroom lock checks {task.id}",
            )


def layer_path(task: TaskSpec, name: str) -> Path:
    return Path(task.home) / "verifiers" / task.id / name


def file_digest(path: Path) -> Digest:
    return Digest("sha256:" + hashlib.sha256(path.read_bytes()).hexdigest())


def written(made: Canaries | Plain) -> str:
    """As text: an edit, a check or a site a line, so that changes can be read."""
    return _text(plain(made), "\n", in_list=False) + "\n"


def _text(value: object, newline: str, *, in_list: bool) -> str:
    if isinstance(value, dict):
        ours = "schema" in value or "edits" in value
        filled = {k: v for k, v in value.items() if v or not ours or k not in _LEFT_OUT}
        if in_list and not any(isinstance(v, dict | list) for v in filled.values()):
            return json.dumps(filled, ensure_ascii=False)
        inner = newline + " "
        parts = [
            f"{json.dumps(k, ensure_ascii=False)}: {_text(v, inner, in_list=False)}"
            for k, v in filled.items()
        ]
        return f"{{{inner}{f',{inner}'.join(parts)}{newline}}}" if parts else "{}"
    if isinstance(value, list) and value:
        inner = newline + " "
        return f"[{inner}{f',{inner}'.join(_text(v, inner, in_list=True) for v in value)}{newline}]"
    return json.dumps(value, ensure_ascii=False)


def _load(task: TaskSpec, name: str, pinned: Digest | None, kind: type[T]) -> T:
    path = layer_path(task, name)
    made = jsonfile.load(path, kind)
    hint = f"find them again: stillroom lock checks {task.id}"
    if (found := file_digest(path)) != pinned:
        raise VerifierFault(
            f"refused: {path} is {found}, not {pinned} as pinned", hint=hint, retry=False
        )
    if made.bundle != task.verifier.bundle.digest:
        raise VerifierFault(f"{path} was made for other hidden tests", hint=hint, retry=False)
    return made
