"""What a trial in boxes tells of an imported instance: whole ids for cut ones, and whether it is a task."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandbox.adapters.swebenchdraft import gate_check, scored_check
from sandbox.adapters.taskhome import write_checks
from sandbox.adapters.trying import Tried, meant, passed, tried
from sandbox.formats import yamlfile
from sandbox.formats.swebench import is_cut
from sandbox.formats.taskfile import load_task
from sandbox.model.task import TaskId
from sandbox.rollout.run import World

_SHOWN = 3
_LISTS = ("scored", "gates", "excluded")


def try_instance(home: Path, name: TaskId, world: World) -> list[str]:
    """Returns what is to be noted. Raises UserError when it is no task here, or a Fault."""
    one = tried(load_task(home, name), world)
    checks = yamlfile.open_document(home / "verifiers" / name / "checks.yaml").data
    whole, notes = _with_whole_ids(checks, one)
    if notes:
        write_checks(home, name, whole)
        one = Tried(task=load_task(home, name), solved=one.solved, idle=one.idle)
    floor = one.floor()
    said = "its reference resolves it here"
    return [*notes, f"{said}; doing nothing is worth {floor:g}" if floor else said]


def _with_whole_ids(checks: Mapping[str, Any], one: Tried) -> tuple[dict[str, Any], list[str]]:
    """An id that was cut becomes those that begin so, where they all end alike, and pass when solved."""
    every = [c["id"] for key in _LISTS for c in checks.get(key, ())]
    cut = [test for test in every if is_cut(test)]
    known = set(every) - {*cut}
    scored: list[dict[str, Any]] = []
    gates: list[dict[str, Any]] = []
    told: dict[str, str] = {}
    for test in cut:
        names = meant(test, one)
        if not names or not passed(one.solved, names[0]) or _is_check(test, names, checks):
            continue
        fresh = [name for name in names if name not in known]
        known.update(fresh)
        if passed(one.idle, names[0]):
            gates += map(gate_check, fresh)
        else:
            scored += map(scored_check, fresh)
        told[test] = f"{test!r}, which seems cut at a space, is {_some(names)}"
    kept = {key: [c for c in checks.get(key, ()) if c["id"] not in told] for key in _LISTS}
    whole = {
        "schema": checks["schema"],
        "scored": kept["scored"] + scored,
        "gates": kept["gates"] + gates,
        "excluded": kept["excluded"],
    }
    return whole, list(told.values())


def _is_check(test: str, names: tuple[str, ...], checks: Mapping[str, Any]) -> bool:
    """Is it itself what it means, and a check already?"""
    return names == (test,) and all(c["id"] != test for c in checks.get("excluded", ()))


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
