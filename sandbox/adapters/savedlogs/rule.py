"""The verdict on what was read: as published, and ours. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sandbox.adapters.savedlogs.doubt import Doubt, Flag, flagged
from sandbox.adapters.savedlogs.reading import Asked, Reading
from sandbox.formats.logs.sighting import Edition, Status
from sandbox.formats.swebenchinstance import ends_open, is_cut
from sandbox.formats.swebenchreport import Sides

Resolution = Literal["full", "partial", "no"]
_PASSES = frozenset({Status.PASSED, Status.XFAIL})
_FAILS = frozenset({Status.FAILED, Status.ERROR})
_KEPT = _PASSES | {Status.SKIPPED}
"""What was passed before and is skipped now is no regression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    fail_only: bool = False
    """Failures are all that the log tells: what is not told passed."""

    @property
    def asked(self) -> Asked:
        tests = frozenset((*self.fail_to_pass, *self.pass_to_pass))
        return Asked(tests, tuple(sorted(t for t in tests if is_cut(t))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    resolution: Resolution
    ours: bool
    tests: Mapping[str, Sides]
    flags: tuple[Flag, ...]


@dataclass(frozen=True, slots=True)
class _Counting:
    """Which statuses are counted, of tests that should pass now and of those that did before."""

    passes: frozenset[Status]
    kept: frozenset[Status]
    fails: frozenset[Status]
    cut: bool = False
    """Does a test that begins like a cut id stand for it?"""


_ONLY_PASSED = frozenset({Status.PASSED})
_OLD = _Counting(_ONLY_PASSED, _ONLY_PASSED, _FAILS)
_COUNTING = {
    Edition.V1_0: _OLD,
    Edition.V1: _OLD,
    Edition.V2: _OLD,
    Edition.V4: _Counting(_PASSES, _PASSES, _FAILS),
    Edition.V5: _Counting(_PASSES, _KEPT, _FAILS | {Status.SKIPPED}, cut=True),
}
_OF_RESULTS = _Counting(_PASSES, _KEPT, frozenset(Status), cut=True)
_OF_RESULTS_STRICTLY = _Counting(_ONLY_PASSED, _ONLY_PASSED, frozenset(Status))


def decide(reading: Reading, expected: Expected, edition: Edition) -> Decision:
    """What the edition makes of a log, what we make of it, and what is odd about it."""
    return _decided(reading, expected, _COUNTING[edition])


def decide_results(reading: Reading, expected: Expected, *, only_passed: bool) -> Decision:
    """Of a file of results: whatever is there and is no pass is a failure."""
    told = replace(expected, fail_only=False)
    return _decided(reading, told, _OF_RESULTS_STRICTLY if only_passed else _OF_RESULTS)


def _decided(reading: Reading, expected: Expected, counting: _Counting) -> Decision:
    def sort_out(tests: tuple[str, ...], passes: frozenset[Status]) -> Sides:
        success, failure = list[str](), list[str]()
        for test in tests:
            status = _status(test, reading, cut=counting.cut and not expected.fail_only)
            if expected.fail_only:
                (failure if status is Status.FAILED else success).append(test)
            elif status in passes:
                success.append(test)
            elif status is None or status in counting.fails:
                failure.append(test)
        return Sides(success=tuple(success), failure=tuple(failure))

    wanted = sort_out(expected.fail_to_pass, counting.passes)
    kept = sort_out(expected.pass_to_pass, counting.kept)
    return Decision(
        resolution=_resolution(wanted, kept),
        ours=_ours(reading, expected),
        tests={"FAIL_TO_PASS": wanted, "PASS_TO_PASS": kept},
        flags=tuple(_flags(reading, expected, (wanted, kept))),
    )


def _flags(reading: Reading, expected: Expected, lists: tuple[Sides, Sides]) -> Iterator[Flag]:
    every = dict.fromkeys((*expected.fail_to_pass, *expected.pass_to_pass))
    counted = {test for tests in lists for test in (*tests.success, *tests.failure)}
    told, last = reading.told, reading.last
    yield from flagged(Doubt.DROPPED, (t for t in every if t not in counted))
    yield from flagged(Doubt.CUT_ID, (t for t in every if ends_open(t)))
    yield from flagged(Doubt.CUT_ID_DISAGREES, (t for t in every if _disagrees(t, reading)))
    yield from flagged(Doubt.CONTRADICTION, (t for t in every if _contradicts(t, reading)))
    yield from flagged(Doubt.UNCOUNTED, (t for t in every if t in told and t not in last))
    if expected.fail_only:
        yield from flagged(Doubt.ABSENT_PASSES, (t for t in every if t not in told))


def _status(test: str, reading: Reading, *, cut: bool) -> Status | None:
    if found := reading.last.get(test):
        return found.status
    if cut and is_cut(test):
        likely = [one.status for name, one in reading.last.items() if _begins(name, test)]
        if len({status in _PASSES for status in likely}) == 1:
            return likely[0]
    return None


def _resolution(wanted: Sides, kept: Sides) -> Resolution:
    """A list of which nothing was counted asks for nothing."""
    if kept.failure:
        return "no"
    if not wanted.failure:
        return "full"
    return "partial" if wanted.success else "no"


def _ours(reading: Reading, expected: Expected) -> bool:
    """Every test that is asked for was told, and never otherwise than well."""

    def well(test: str, accepted: frozenset[Status]) -> bool:
        if test in reading.worst:
            return reading.worst[test] in accepted
        likely = [s for name, s in reading.worst.items() if ends_open(test) and _begins(name, test)]
        return accepted.issuperset(likely) if likely else expected.fail_only

    return all(well(t, _PASSES) for t in expected.fail_to_pass) and all(
        well(t, _KEPT) for t in expected.pass_to_pass
    )


def _begins(name: str, test: str) -> bool:
    return name.startswith(test)


def _disagrees(test: str, reading: Reading) -> bool:
    if test in reading.last or not is_cut(test):
        return False
    likely = {one.status in _PASSES for name, one in reading.last.items() if _begins(name, test)}
    return len(likely) > 1


def _contradicts(test: str, reading: Reading) -> bool:
    return len({status in _PASSES for status in reading.told.get(test, ())}) > 1
