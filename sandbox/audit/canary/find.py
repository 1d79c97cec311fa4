"""A task's canaries, from beginning to end."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from sandbox.audit.canary.admit import Admission
from sandbox.audit.canary.bench import Bench
from sandbox.audit.canary.literals import TestFile, read_files
from sandbox.audit.canary.mutants import mutants
from sandbox.audit.canary.places import Literal
from sandbox.audit.canary.propose import vocabulary
from sandbox.audit.canary.public import public_forms
from sandbox.audit.canary.quest import Quest
from sandbox.audit.canary.search import Search
from sandbox.audit.canary.several import in_order, several
from sandbox.errors import UserError
from sandbox.formats.digest import Entry
from sandbox.formats.patchwrite import make_patch
from sandbox.grading.apply import applied
from sandbox.model.layers import Canaries, Canary, Unit
from sandbox.model.task import TaskSpec, without_layers
from sandbox.model.verdict import Outcome, Ran, Seen
from sandbox.runtime.base import Runtime
from sandbox.runtime.repo.pins import read_files as committed_files
from sandbox.runtime.supplies import Depot, Supplies

WRONG = 3
"""Wrong solutions that the canaries are held against."""
_MANY_TIMES, _MORE_SECONDS = 6, 60.0
_SOON = 3.0
"""Seconds. A canary is run with each verdict: one that takes longer to fail costs too much."""
_NO_LITERAL = "there is no literal to edit"
_NO_EDIT = "no edit made the reference solution fail by an assertion in a few seconds"
_NOT_PASSED = "the reference solution does not pass it"
_NO_FUNCTION = "its test function was not found"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Canaries, and what it took to find them."""

    canaries: Canaries
    rounds: int
    pairs: int
    """Of a check and a wrong solution that passes it."""
    forgiven: int
    """Pairs in which the canary that was found first did not fail."""


def find_canaries(
    task: TaskSpec,
    depot: Depot,
    runtime: Runtime,
    note: Callable[[str, int, int], None],
    *,
    jobs: int = 2,
    wrong: int = WRONG,
    only: Collection[str] = (),
) -> Found:
    """The same task gets the same canaries. Raises a Fault, or UserError where none can be had.

    only: files of hidden tests that may be edited; see canary.some.
    """
    supplies = depot.supply(without_layers(task))
    bench = Bench(task=task, runtime=runtime, supplies=supplies, jobs=jobs)
    solution = depot.solution(task, supplies)
    note("the reference solution", 0, 1)
    usual = bench.run((), solution)
    if usual.ran is not Ran.FINISHED:
        raise UserError(f"the reference solution of `{task.id}` does not do: {usual.detail}")
    bench = replace(bench, task=_hurried(task, usual))
    files = read_files(supplies.tests)
    checks = [c.id for c in task.verifier.checks]
    search = Search(
        files=files,
        entries=supplies.tests,
        known=vocabulary(_literals(files)),
        usual=usual.report,
        checks=[c for c in checks if _passed(usual.report.get(c))],
        run=lambda edits, paths=(): bench.run(edits, solution, paths),
        note=note,
        only=only,
        scored=[c.id for c in task.verifier.checks if not c.gate],
        public=public_forms(committed_files(supplies.repo), [e.path for e in supplies.tests]),
    )
    search.prepare()
    search.try_functions()
    search.try_data()
    search.try_shared()
    bad = {"": b""} | {
        f"mutant {n}": make_patch(supplies.base, made)
        for n, made in enumerate(
            mutants(supplies.base, _solved(task, supplies, solution), wrong), 1
        )
    }
    admission = Admission(search=search, bench=bench, solution=solution, wrong=bad, note=note)
    admission.admit()
    more = several(admission, search.scored)
    canaries = Canaries(
        bundle=task.verifier.bundle.digest,
        units=tuple(_units(search, admission, more)),
        uncovered=dict(_uncovered(checks, search, admission)),
    )
    return Found(
        canaries=canaries,
        rounds=search.rounds,
        pairs=admission.mutant_pairs,
        forgiven=admission.forgiven,
    )


def _hurried(task: TaskSpec, usual: Seen) -> TaskSpec:
    """With limits that an edit which makes a test hang comes to soon."""
    spec = task.verifier
    longest = max((told.seconds for told in usual.report.values()), default=0.0)
    each = _MANY_TIMES * longest + _SOON
    every = _MANY_TIMES * usual.seconds + _MORE_SECONDS
    limited = replace(
        spec,
        seconds=min(spec.seconds, every),
        check_seconds=min(spec.check_seconds or each, each),
    )
    return replace(task, verifier=limited)


def _solved(task: TaskSpec, supplies: Supplies, solution: bytes) -> list[Entry]:
    """The files of the submission's paths, with the reference solution."""
    made = applied(task, supplies.base, solution)
    after = {e.path: e for e in (*supplies.base, *made.files)}
    return [e for path, e in sorted(after.items()) if path not in made.removed]


def _units(
    search: Search, admission: Admission, more: Mapping[str, tuple[Canary, ...]]
) -> Iterator[Unit]:
    for _, quest in sorted(search.quests.items()):
        if not quest.covered:
            continue
        covered = [check for check in quest.checks if check in quest.covered]
        yield Unit(
            name=quest.name,
            edits=in_order(quest.kept()),
            checks={check: admission.told[check] for check in covered},
            loose=tuple(c for c in covered if not quest.covered[c].strict),
            others=tuple(c for c in quest.checks if c not in quest.covered),
            more=more.get(quest.name, ()),
        )


def _uncovered(
    checks: list[str], search: Search, admission: Admission
) -> Iterator[tuple[str, str]]:
    owners = {check: quest for quest in search.quests.values() for check in quest.checks}
    known = set(search.checks)
    for check in checks:
        owner = owners.get(check)
        if owner and check in owner.covered:
            continue
        yield check, _why(check, owner, check in known, admission.reasons)


def _why(check: str, owner: Quest | None, passes: bool, reasons: dict[str, str]) -> str:  # noqa: FBT001
    if not passes:
        return _NOT_PASSED
    if owner is None:
        return _NO_FUNCTION
    return reasons.get(check) or (_NO_EDIT if owner.tries else _NO_LITERAL)


def _literals(files: dict[str, TestFile]) -> Iterator[Literal]:
    for file in files.values():
        for function in (*file.functions.values(), *file.shared.values()):
            yield from function.literals


def _passed(report: object) -> bool:
    return getattr(report, "outcome", None) is Outcome.PASSED
