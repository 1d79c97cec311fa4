"""Does a task's clock start at an instant that nothing trips over? Advice: a verdict counts anyway."""

from collections.abc import Iterator, Mapping, Sequence

from sandbox.errors import Fault
from sandbox.model.instant import awkward, good_near, seconds_of, written
from sandbox.model.task import TaskId, TaskSpec
from sandbox.runtime.supplies import Depot


def advise(tasks: Sequence[TaskSpec], depot: Depot) -> dict[TaskId, tuple[str, ...]]:
    """What there is to say of each task's clock; nothing of a task that cannot be had."""
    return {task.id: tuple(advice(task.clock.at, _newest(depot, task))) for task in tasks}


def _newest(depot: Depot, task: TaskSpec) -> Mapping[str, int]:
    try:
        return depot.newest(task)
    except Fault:
        return {}  # its rollouts are void, and say why


def advice(at: str, newest: Mapping[str, int]) -> Iterator[str]:
    """Pure. newest: what a box is made of, and when its newest file was made."""
    if why := awkward(at):
        yield f"clock.at is {at}: {why}\n    hint: {good_near(at)} is near, and a good instant"
    for name, seconds in newest.items():
        if seconds > seconds_of(at):
            yield (
                f"clock.at is {at}, but files of the {name} are dated {written(seconds)}: to "
                "programs in a box they come from the future\n"
                f"    hint: {good_near(written(seconds + _SOON))} is after that"
            )


_SOON = 28 * 86400
"""The good instant that is nearest to so much later is later, too."""
