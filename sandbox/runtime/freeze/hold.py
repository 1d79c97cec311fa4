"""A box's clock, held as well as the machine can: of every program, or of most, and then told."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.errors import RuntimeFault
from sandbox.model.instant import nanoseconds_of, written
from sandbox.model.task import ClockSpec, RandomSpec
from sandbox.model.verdict import HeldClock
from sandbox.runtime.base import Runtime
from sandbox.runtime.freeze import preload
from sandbox.runtime.spec import BoxSpec, Stillness

_HINT = "see docs/reference/freeze.md: what holds the clock, and what that needs"
STILL = "/.stillroom/still"
"""In a box whose clock is held: the program that holds it, and that can look whether it does."""
Scratch = Callable[[], AbstractContextManager[Path]]
"""Makes a folder that is gone afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A spec that can be made on this machine. Its clock starts when it is."""

    spec: BoxSpec
    clock: HeldClock | None
    """None: it was not asked for."""


def stillness(clock: ClockSpec, random: RandomSpec | None = None) -> Stillness:
    """What a box has to hold. Without `random`, chance is left alone."""
    chance = random or RandomSpec()
    return Stillness(
        at_ns=nanoseconds_of(clock.at),
        mode=clock.mode,
        step_ns=round(clock.step_seconds * 1e9),
        aslr=chance.aslr,
        seed=chance.seed,
    )


@contextmanager
def held(
    spec: BoxSpec,
    runtime: Runtime,
    scratch: Scratch,
    *,
    strict: bool,
    now: Callable[[], float] = time.time,
) -> Iterator[Held]:
    """`spec.still` as the runtime can hold it, or as near as libfaketime comes to that.

    Use what it gives for a box that lives within this `with`. `now`: the machine's clock. Raises
    RuntimeFault rather than leave a box with the machine's clock: when nothing less than all will
    do (`strict`, another mode than ticking, chance that should be held), or there is no libfaketime.
    """
    still = spec.still
    why = runtime.capabilities().still if still else ""
    if still is None or not why:
        yield Held(spec=spec, clock=_held(still) if still else None)
        return
    _require_enough(spec, still, why, strict=strict)
    with scratch() as folder:
        moment = now()
        env = {**spec.env, **preload.environment(still.at_ns, now=moment)}
        mounts = (*spec.mounts, *preload.mounts(still.at_ns, folder, now=moment))
        warning = f"the clock is held for programs that load a C library only: {why}"
        yield Held(
            spec=replace(spec, still=None, env=env, mounts=mounts), clock=_held(still, warning)
        )


def _held(still: Stillness, warning: str = "") -> HeldClock:
    return HeldClock(
        at=written(still.at_ns / 1e9),
        mode=still.mode,
        coverage="partial" if warning else "full",
        warning=warning,
    )


def _require_enough(spec: BoxSpec, still: Stillness, why: str, *, strict: bool) -> None:
    lacking = ""
    if strict:
        lacking = "the task allows no less (clock.strict)"
    elif still.mode != "ticking":
        lacking = f"`clock.mode: {still.mode}` cannot be had otherwise"
    elif still.seed is not None or not still.aslr:
        lacking = "what the task says under `random` cannot be had otherwise"
    elif not preload.has_library(spec.image):
        lacking = f"the image {spec.image.name} has no {preload.LIBRARY}"
    if lacking:
        raise RuntimeFault(
            f"the clock of every program cannot be held here: {why}; and {lacking}",
            hint=_HINT,
            retry=False,
        )
