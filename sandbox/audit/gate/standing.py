"""What can be said of a task without running it, or from the one run there is. Pure, but for files."""

import math
from collections.abc import Iterator

from sandbox.audit.certify.shelf import hold
from sandbox.audit.gate.finding import Finding, finding
from sandbox.formats.layerfile import load_layers
from sandbox.grading.further import shown
from sandbox.model.layers import Canaries, Plain
from sandbox.model.record import Rollout
from sandbox.model.task import TaskSpec

LEAST_COVERED = 0.8
_REASONS = 3
_MOST_BITS = 64.0
_TRUTHS = ("true", "false", "null", "none")
_BITS = 8


def of_certificate(task: TaskSpec) -> Iterator[Finding]:
    held = hold(task, None)
    if held.objections == ("there is none",):
        yield finding("SR-UNCERTIFIED", f"there is no {held.path}")
    elif held.objections:
        yield finding("semantic.replayability", f"{held.path}: {'; '.join(held.objections)}")


def of_layers(task: TaskSpec) -> Iterator[Finding]:
    """Raises SpecError, or VerifierFault for files that are not what is pinned."""
    layers = load_layers(task)
    if layers.canaries:
        yield from of_canaries(task, layers.canaries)
        yield from of_unshown(task, layers.withheld)
    if found := layers.withheld or layers.plain:
        yield from of_expectations(found)


def of_canaries(task: TaskSpec, canaries: Canaries) -> Iterator[Finding]:
    covered = canaries.canary_of()
    checks = [c.id for c in task.verifier.checks]
    have = sum(c in covered for c in checks)
    if have < LEAST_COVERED * len(checks):
        reasons = sorted(
            {canaries.uncovered.get(c, "no reason given") for c in checks if c not in covered}
        )
        said = "; ".join(reasons[:_REASONS])
        yield finding("SR-CANARY", f"{have} of {len(checks)} checks have a canary: {said}")
    unproved = canaries.unproved([c.id for c in task.verifier.checks if not c.gate])
    for check in task.verifier.checks:
        if check.weight > 0 and check.id in unproved:
            yield finding("SR-UNPROVED", f"{check.id} weighs {check.weight:g}")


def of_unshown(task: TaskSpec, withheld: Plain | None) -> Iterator[Finding]:
    """What earns a part of the reward by an outcome alone, which a guess may get right."""
    scored = [c for c in task.verifier.checks if not c.gate]
    blind = [c for c in scored if not shown(withheld, [c.id])]
    if blind == scored:
        yield finding("SR-UNSHOWN", "none of the scored checks: a guess may have full marks")
    for check in blind:
        if check.weight > 0:
            yield finding("SR-UNSHOWN", f"{check.id} weighs {check.weight:g}")


def of_expectations(plain: Plain) -> Iterator[Finding]:
    bits = sorted(_bits(site.expected) for site in plain.sites)
    if bits:
        median, ones = bits[len(bits) // 2], sum(b <= 1 for b in bits)
        said = f"{len(bits)} expectations of about {median:.0f} bits each; {ones} of one bit"
        yield finding("SR-BITS", said)


def of_cost(task: TaskSpec, oracle: Rollout) -> Iterator[Finding]:
    if not oracle.verdict:
        return
    seconds, limit = oracle.seconds.get("checks", 0.0), task.verifier.seconds
    total = oracle.seconds.get("verify", 0.0)
    said = f"{total:.1f} s for a verdict, {seconds:.1f} s of them in the checks; a submission of {oracle.patch_bytes} bytes; {task.limits.memory_mib} MiB of memory at most"
    yield finding("SR-COST", said)
    if seconds > limit / 2:
        yield finding("SR-SLOW", f"{seconds:.0f} of {limit:g} seconds")


def _bits(expected: str) -> float:
    """Of a value, as it is written: a truth is one bit, a text is as many characters as differ."""
    told = expected.strip().lower()
    if told in _TRUTHS or any(told.endswith(f" {t}") for t in _TRUTHS):
        return 1.0
    return min(_MOST_BITS, max(1.0, math.log2(len(set(told)) + 1) * len(told)))
