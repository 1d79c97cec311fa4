"""How the box of a verdict is set up: as the task has it, or under other conditions. Pure."""

from dataclasses import dataclass, replace

from sandbox.model.conditions import Conditions
from sandbox.model.instant import seconds_of
from sandbox.model.task import TaskSpec
from sandbox.runtime.freeze.hold import stillness
from sandbox.runtime.spec import HOSTNAME, BoxSpec, Stillness
from sandbox.runtime.supplies import Supplies

VARIABLES = {
    "LANG": "C.UTF-8",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
}
"""Whatever the image says. SOURCE_DATE_EPOCH comes with the clock."""
_USER, _ROOT = "65534:65534", "0:0"
_HOME_MIB = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A box, and what is asked of the runner in it."""

    box: BoxSpec
    still: Stillness
    """What has to hold there, however that is brought about."""
    environment: dict[str, str]
    """Of the code under test, beside the box's own."""
    user: str
    """Who runs the checks: `uid:gid`."""
    umask: int
    """Of the checks; what gets the box ready has the box's own."""
    order: int | None
    load: int


def setting(
    task: TaskSpec, supplies: Supplies, conditions: Conditions, *, rootless: bool = False
) -> Setting:
    """rootless: boxes have no user but root, so whoever watches the checks is their user, too."""
    given = conditions
    clock = replace(task.clock, at=given.at or task.clock.at, mode=given.mode or task.clock.mode)
    cpus = task.limits.cpus if given.cpus is None else given.cpus
    epoch = {"SOURCE_DATE_EPOCH": str(seconds_of(clock.at))}
    still = stillness(clock, task.random)
    box = BoxSpec(
        image=supplies.image,
        seeds=(supplies.seed,),
        limits=replace(task.limits, cpus=cpus),
        env={**VARIABLES, **epoch, **given.env},
        workdir=task.workdir,
        hostname=given.hostname or HOSTNAME,
        still=still,
        labels={"task": task.id, "role": "verifier"},
    )
    box = replace(box, tmpfs=_home(box))
    return Setting(
        box=box,
        still=still,
        environment={**task.env, **given.env},
        user=given.user or (_ROOT if rootless else _USER),
        umask=box.umask if given.umask is None else given.umask,
        order=given.order,
        load=given.load,
    )


def _home(box: BoxSpec) -> dict[str, int]:
    """The home of who runs the checks: of the name that the agent's had, empty and in memory."""
    home = box.environment.get("HOME", "").rstrip("/")
    if not home.startswith("/") or f"{box.workdir}/".startswith(f"{home}/"):
        return {}
    return {home: _HOME_MIB}
