"""The list of checks, and what a runtime has to be able to do for one to make sense."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import Literal

from sandbox.audit.conformance.bench import Bench
from sandbox.runtime.base import Capabilities, DiskKind, Held

Need = Held | Literal["freeze", "snapshot", "still", "disk: watch", "disk: tmpfs", "disk: loop"]
Function = Callable[[Bench], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    group: str
    name: str
    """A sentence."""
    promise: str
    """The part of the contract it holds."""
    needs: tuple[Need, ...]
    """Of the runtime's capabilities; without them it is skipped."""
    function: Function


class Group:
    """The checks of one module, in the order in which they are written down."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check] = []

    def check(self, *needs: Need) -> Callable[[Function], Function]:
        def add(function: Function) -> Function:
            made = Check(
                group=self.name,
                name=function.__name__.replace("_", " "),
                promise=cleandoc(function.__doc__ or ""),
                needs=needs,
                function=function,
            )
            self.checks.append(made)
            return function

        return add


def lacks(check: Check, found: Capabilities) -> str:
    """What the check needs and the runtime does not have here; empty when it can be run."""
    missing = [
        f"{need} ({found.still})" if need == "still" else need
        for need in check.needs
        if not _has(need, found)
    ]
    return f"this runtime does not hold here: {', '.join(missing)}" if missing else ""


def _has(need: Need, found: Capabilities) -> bool:
    kinds: dict[str, DiskKind] = {
        "disk: watch": "watch",
        "disk: tmpfs": "tmpfs",
        "disk: loop": "loop",
    }
    if need == "freeze":
        return found.freeze
    if need == "snapshot":
        return found.snapshot
    if need == "still":
        return not found.still
    if need in kinds:
        return kinds[need] in found.disk
    return need in found.limits
