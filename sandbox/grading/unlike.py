"""Is this evidence of the task as it is now? Pure."""

from collections.abc import Iterator

from sandbox.formats.taskfile import task_parts
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import Pins

_PARTS = {
    "canaries": "canaries (verifier.canaries)",
    "plain": "plain run (verifier.plain)",
    "bundle": "hidden tests (verifier.bundle)",
    "image": "image",
}
_BESIDE = frozenset({"solution"})
"""Nothing that a verifier's box shows depends on them."""


def unlike(pins: Pins | None, task: TaskSpec) -> Iterator[str]:
    """Each part of the task that is not as it was, by name; none where only checks are weighed anew.

    Checks, weights, gates and what they accept belong to judging: evidence holds every outcome.
    """
    if pins is None:
        yield "nothing: the evidence does not say what it is of"
        return
    if pins.task == task.digest:
        return
    spec = task.verifier
    now = {
        "image": task.image.digest,
        "bundle": spec.bundle.digest,
        "canaries": spec.canaries or "",
        "plain": spec.plain or "",
    }
    others = [name for part, name in _PARTS.items() if getattr(pins, part) != now[part]]
    yield from others
    if not pins.parts:
        if not others:
            yield "something: the evidence is older than the digests that would say what"
        return
    parts = task_parts(task)
    for part in sorted((parts.keys() | pins.parts.keys()) - _BESIDE):
        told = part == "image" or (part == "verifier" and others)
        if not told and parts.get(part) != pins.parts.get(part):
            yield part
