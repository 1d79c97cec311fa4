"""Reports as the SWE-bench family's tools read them: one for each instance, one for a whole run."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sandbox.formats.logs.causes import Cause

SCHEMA_VERSION = 2
State = Literal["resolved", "unresolved", "empty", "error", "void"]
"""`error`: its patch could not be read or applied. `void`: our world broke, and there is no verdict."""
_LONGEST_NAME = 120
"""In bytes: a run's name and an ending come after it."""
_LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS", "FAIL_TO_FAIL", "PASS_TO_FAIL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """One list of an instance's tests: those that ended as they should, and the others."""

    success: tuple[str, ...] = ()
    failure: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was found out about one prediction."""

    instance_id: str
    state: State
    why: str = ""
    """When it is not resolved."""
    null: bool = False
    """Was there no patch, instead of an empty one?"""
    tests: Mapping[str, Sides] = field(default_factory=dict)
    """FAIL_TO_PASS, PASS_TO_PASS → how they ended."""
    cause: Cause | None = None
    """What of the machine may have failed, as far as a log shows it. Advice only."""

    @property
    def completed(self) -> bool:
        return self.state in ("resolved", "unresolved")


def instance_report(result: Result) -> dict[str, Any]:
    """report.json of one instance."""
    void = result.state == "void"
    report: dict[str, Any] = {
        "patch_is_None": result.null,
        "patch_exists": result.state != "empty",
        "patch_successfully_applied": result.completed,
        "resolved": result.state == "resolved",
        "infra_failure": void,
    }
    if void:
        report["infra_failure_reason"] = result.why
    elif result.cause and not result.completed:
        report["infra_failure"] = result.cause.certain
        report["infra_failure_reason"] = result.cause.name
    if result.completed:
        report["tests_status"] = {name: _status(result.tests.get(name)) for name in _LISTS}
    return {result.instance_id: report}


def _status(tests: Sides | None) -> dict[str, list[str]]:
    found = tests or Sides()
    return {"success": list(found.success), "failure": list(found.failure)}


def run_report(results: Iterable[Result], instances: Collection[str]) -> dict[str, Any]:
    """The report of a whole run. instances: ids of the data set, submitted or not."""
    by_id = {r.instance_id: r for r in results}
    ids = {
        "completed": _of(by_id, ("resolved", "unresolved")),
        "incomplete": sorted(set(instances) - by_id.keys()),
        "empty_patch": _of(by_id, ("empty",)),
        "submitted": sorted(by_id),
        "resolved": _of(by_id, ("resolved",)),
        "unresolved": _of(by_id, ("unresolved",)),
        "infra_failure": sorted([*_of(by_id, ("void",)), *_caused(by_id, certain=True)]),
        "ambiguous_failure": _caused(by_id, certain=False),
        "error": _of(by_id, ("error", "void")),
    }
    counted = ("submitted", "completed", "resolved", "unresolved", "infra_failure",
               "ambiguous_failure", "empty_patch", "error")  # fmt: skip
    return {
        "total_instances": len(set(instances) | by_id.keys()),
        **{f"{name}_instances": len(ids[name]) for name in counted},
        **{f"{name}_ids": found for name, found in ids.items()},
        "failure_reasons": {i: _reason(by_id[i]) for i in sorted(by_id) if _reason(by_id[i])},
        "unstopped_instances": 0,
        "unstopped_containers": [],
        "unremoved_images": [],
        "schema_version": SCHEMA_VERSION,
    }


def _of(results: Mapping[str, Result], states: Sequence[State]) -> list[str]:
    return sorted(i for i, r in results.items() if r.state in states)


def _caused(results: Mapping[str, Result], *, certain: bool) -> list[str]:
    """They stay among the unresolved and the errors."""
    failed = [r for r in results.values() if r.state in ("unresolved", "error") and r.cause]
    return sorted(r.instance_id for r in failed if r.cause and r.cause.certain is certain)


def _reason(result: Result) -> str:
    if result.state in ("error", "void"):
        return result.cause.name if result.cause else result.why
    return result.cause.name if result.cause and result.state == "unresolved" else ""


def folder_name(model: str) -> str:
    """A model's name as that of a folder, where the family's tools look for it: `/` is `__`.

    It may have been chosen by anybody: nothing of it hides, leads elsewhere or is too long.
    """
    kept = "".join(c if c.isprintable() else "_" for c in model.replace("/", "__")).strip()
    raw = (f"_{kept}" if kept.startswith(".") else kept).encode()[:_LONGEST_NAME]
    return raw.decode(errors="ignore").rstrip() or "unnamed"


def folder_names(models: Iterable[str]) -> dict[str, str]:
    """Of each model its own, even where two come out alike."""
    names: dict[str, str] = {}
    for model in models:
        name = folder_name(model)
        if name in names.values():
            name = f"{name}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"
        names[model] = name
    return names
