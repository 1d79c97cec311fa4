"""Canaries of some files of hidden tests are found anew; those of the others stay."""

from collections.abc import Collection
from dataclasses import replace

from sandbox.errors import UserError
from sandbox.formats import jsonfile
from sandbox.formats.layerfile import CANARIES, layer_path
from sandbox.grading.variants import canaried
from sandbox.model.layers import Canaries
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import file_of
from sandbox.runtime.supplies import Supplies


def narrowed(task: TaskSpec, files: Collection[str]) -> TaskSpec:
    """The task, as if these were all of its hidden tests. Raises UserError where it can't be."""
    if task.verifier.runner != "pytest":
        raise UserError(
            f"{task.verifier.runner} is not asked for single files", hint="leave --file out"
        )
    checks = tuple(c for c in task.verifier.checks if file_of(c.id) in files)
    if missing := {*files} - {file_of(c.id) for c in checks}:
        hint = "name it as the ids in checks.yaml do, before `::`"
        raise UserError(f"`{task.id}` has no check in {min(missing)}", hint=hint)
    return replace(task, verifier=replace(task.verifier, checks=checks, arguments=tuple(files)))


def merged(task: TaskSpec, found: Canaries, files: Collection[str], supplies: Supplies) -> Canaries:
    """What was found in these files, and what canaries.json has of the others.

    supplies: of the task. Raises SpecError, and VerifierFault when those do not fit any more.
    """
    before = jsonfile.load(layer_path(task, CANARIES), Canaries)
    known = {c.id for c in task.verifier.checks}
    kept = [u for u in before.units if known >= u.checks.keys()]
    kept = [u for u in kept if not {file_of(c) for c in u.checks} & {*files}]
    for number in range(max((len(unit.canaries) for unit in kept), default=0)):
        drawn = {unit.name: number for unit in kept}
        canaried(supplies.tests, replace(before, units=tuple(kept)), drawn, drawn)
    left = {c: why for c, why in before.uncovered.items() if c in known and file_of(c) not in files}
    return replace(
        found,
        units=tuple(sorted((*kept, *found.units), key=lambda unit: unit.name)),
        uncovered=left | dict(found.uncovered),
    )
