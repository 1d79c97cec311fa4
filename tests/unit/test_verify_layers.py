"""Two boxes for one verdict: what is in each, and what is made of what they show."""

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import RuntimeFault
from sandbox.formats.digest import Entry
from sandbox.grading.judge import judge
from sandbox.grading.plainly import confirmed
from sandbox.grading.verify import verify
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.layers import Canaries, Edit, Layers, Plain, Site, Unit
from sandbox.model.record import Submission
from sandbox.model.task import CheckSpec, Digest
from sandbox.model.verdict import CheckReport, CheckResult, Evidence, Outcome, Ran, Seen
from sandbox.runtime.base import ExecResult
from sandbox.runtime.fake import Call, FakeBox, FakeRuntime, said
from tests.support.homes import a_task, some_supplies
from tests.unit.test_verify import END, STILL, passed, records, told

NAMES = ("one", "two", "three", "four")
CHECKS = {name: f"tests/test_a.py::test_{name}" for name in NAMES}
SOURCE = "".join(f"def test_{n}():\n    assert f('{n}') == '{n}!'\n" for n in NAMES)
CANARIES = Canaries(
    bundle=Digest(""),
    units=tuple(
        Unit(
            name=CHECKS[name],
            edits=(
                Edit(path="tests/test_a.py", line=2 * i + 2, column=SOURCE.splitlines()[2 * i + 1].index("== ") + 3, old=f"'{name}!'", new="'eno'"),
            ),
            checks={CHECKS[name]: CHECKS[name]},
        )
        for i, name in enumerate(NAMES)
    ),
)  # fmt: skip
PLAIN = Plain(
    bundle=Digest(""),
    checks={CHECKS["one"]: ("k",)},
    sites=(
        Site(
            key="k", path="tests/test_a.py", line=2, column=4, end_line=2,
            end_column=len(SOURCE.splitlines()[1]), source="f('one')", expected="'one!'",
        ),
    ),
)  # fmt: skip


def honest(source: str) -> dict[str, str]:
    """What a right solution gets for these tests."""
    seen = [("__observe__" in source and n == "one") or f"'{n}!'" in source for n in NAMES]
    return {n: "passed" if right else "failed" for n, right in zip(NAMES, seen, strict=True)}


def forging(source: str) -> dict[str, str]:
    del source
    return dict.fromkeys(NAMES, "passed")


class Verified:
    """A verify in fake boxes whose tests end as `code` says, which sees their source."""

    def __init__(self, home: Path, code: Callable[[str], Mapping[str, str]]) -> None:
        checks = tuple(CheckSpec(id=c) for c in CHECKS.values())
        self.task = a_task(home, checks=checks)
        self.code = code
        self.layers = Layers(canaries=CANARIES)
        self.supplies = replace(
            some_supplies(self.task, home / "supplies"),
            tests=(Entry("tests/test_a.py", "file", SOURCE.encode()),),
            secret=b"s" * 32,
        )
        self.sources: list[str] = []
        self.named = CHECKS
        self.told: dict[str, str] = {"k": "'one!'"}

    def reply(self, box: FakeBox, call: Call) -> ExecResult | None:
        if call.argv[0] in ("git", "chown", "rm"):
            return said()
        if not any(word.startswith("/verify/") for word in call.argv):
            return None
        with tarfile.open(
            fileobj=io.BytesIO(b"".join(box.get("/work/toy/tests/test_a.py")))
        ) as tar:
            inner = tar.extractfile(tar.getmembers()[0])
            source = inner.read().decode() if inner else ""
        self.sources.append(source)
        seen = {"probe": STILL}
        checks = [passed(self.named[n], o) for n, o in self.code(source).items()]
        if "__observe__" in source:
            checks += [{"observe": k, "value": v} for k, v in self.told.items()]
        return told(records(seen, *checks, seen, END))

    def evidence(self, conditions: Conditions = USUAL, attempt: int = 0) -> Evidence:
        made = Submission(task=self.task.id, patch=b"")
        supplies = replace(self.supplies, layers=self.layers)
        return verify(
            self.task, made, FakeRuntime(self.reply), supplies,
            attempt=attempt, conditions=conditions, now=lambda: 1000.0,
        )  # fmt: skip

    def evidence_of(self, attempt: int) -> Evidence:
        return self.evidence(attempt=attempt)


@pytest.fixture
def verified(tmp_path: Path) -> Callable[..., Verified]:
    return lambda code=honest: Verified(tmp_path, code)


def test_each_test_is_itself_in_one_box_and_a_canary_in_the_other(verified):
    it = verified()
    it.evidence()
    for name in NAMES:
        assert sorted(f"'{name}!'" in source for source in it.sources[:2]) == [False, True]
        assert SOURCE.count("\n") == it.sources[0].count("\n")


def test_the_same_submission_gets_the_same_coins_and_another_attempt_others(verified):
    it = verified()
    drawn = [it.evidence(attempt=n).swapped for n in (0, 0, *range(1, 12))]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 3


def test_what_is_right_is_resolved_and_what_is_forged_is_worth_nothing(verified):
    it = verified()
    assert judge(it.task.verifier, it.evidence(), it.layers).reward == 1.0
    it.code = forging
    verdict = judge(it.task.verifier, it.evidence(), it.layers)
    assert (verdict.reward, verdict.flags) == (0.0, ("forged",))
    assert verdict.reason.startswith("forged: ")


def test_a_part_of_it_is_worth_its_share(verified):
    it = verified(lambda source: honest(source) | {"two": "failed"})
    verdict = judge(it.task.verifier, it.evidence(), it.layers)
    assert (verdict.reward, verdict.flags) == (0.75, ())


@pytest.mark.parametrize("outcome", ["error", "skipped", "xfailed"])
def test_a_canary_that_did_not_fail_proves_nothing(verified, outcome):
    it = verified(
        lambda source: {n: o if o == "passed" else outcome for n, o in honest(source).items()}
    )
    verdict = judge(it.task.verifier, it.evidence(), it.layers)
    assert (verdict.reward, verdict.flags) == (0.0, ())
    assert f"its canary was {outcome}" in verdict.reason


def test_a_plain_run_is_made_of_a_full_pass_only_and_has_to_agree(verified):
    it = verified()
    it.layers = Layers(canaries=CANARIES, withheld=PLAIN, plain=PLAIN)
    assert judge(it.task.verifier, it.evidence(), it.layers).resolved
    assert len(it.sources) == 7
    assert "'one!'" not in it.sources[-1]
    assert "__observe__('k', f('one'))" in it.sources[-1]
    it.told = {"k": "'other'"}
    verdict = judge(it.task.verifier, it.evidence(), it.layers)
    assert (verdict.reward, verdict.flags) == (0.0, ("test-dependent",))
    it.sources.clear()
    it.code = forging
    it.evidence()
    assert len(it.sources) == 2


def test_evidence_without_what_the_task_rests_on_proves_nothing(verified):
    it = verified()
    alone = it.evidence(Conditions(layers="none"))
    assert (len(it.sources), alone.second) == (1, None)
    assert judge(it.task.verifier, alone, it.layers).flags == ("unproved",)
    assert judge(it.task.verifier, alone).resolved


def test_a_fault_in_one_box_is_a_fault_of_both(verified):
    def gone_for_the_second(source: str) -> dict[str, str]:
        if len(it.sources) > 1:
            raise RuntimeFault("the engine is gone")
        return honest(source)

    it = verified(gone_for_the_second)
    with pytest.raises(RuntimeFault):
        it.evidence()


def test_json_keeps_it(verified, tmp_path):
    from sandbox.formats import jsonfile  # noqa: PLC0415

    evidence = verified().evidence()
    jsonfile.write(tmp_path / "e.json", jsonfile.dumps(evidence))
    assert jsonfile.load(tmp_path / "e.json", Evidence) == evidence
    assert json.loads((tmp_path / "e.json").read_text())["second"]["ran"] == "finished"


def test_what_has_no_canary_counts_only_if_it_passes_without_the_test_runner_too(verified):
    """For an answer that is right in part: forging the rest would be worth its share."""
    it = verified(lambda source: honest(source) | {"two": "failed", "four": "passed"})
    canaries = replace(CANARIES, units=CANARIES.units[:3], uncovered={CHECKS["four"]: "none"})
    plain = replace(PLAIN, checks={CHECKS["four"]: ()}, sites=())
    it.layers = Layers(canaries=canaries, plain=plain)
    assert judge(it.task.verifier, it.evidence(), it.layers).reward == 0.75
    assert len(it.sources) == 9

    def only_under_test(source: str) -> dict[str, str]:
        forged = "failed" if len(it.sources) == 9 else "passed"
        return honest(source) | {"two": "failed", "four": forged}

    it.sources.clear()
    it.code = only_under_test
    verdict = judge(it.task.verifier, it.evidence(), it.layers)
    assert (verdict.reward, verdict.flags) == (0.5, ())
    assert "not without the test runner" in verdict.checks[3].note


@pytest.mark.parametrize(
    ("observed", "counts"), [(("'one!'",), True), (("'x'", "'one!'"), True), (("'x'",), False)]
)
def test_what_brings_a_part_of_the_reward_shows_what_is_expected_without_the_test_runner(
    observed, counts
):
    """Rows of one test share an assertion: another row may be wrong."""
    spec = CheckSpec(id=CHECKS["one"])
    plain = replace(PLAIN, checks={spec.id: ("k",), f"{spec.id}[2]": ("k",)})
    seen = Seen(
        ran=Ran.FINISHED,
        report={spec.id: CheckReport(outcome=Outcome.PASSED)},
        observed={"k": observed},
    )
    layers = Layers(canaries=CANARIES, withheld=plain, plain=plain)
    (result,) = confirmed([CheckResult(spec, Outcome.PASSED)], seen, layers)
    assert result.passed is counts
    gate = CheckResult(replace(spec, gate=True), Outcome.PASSED)
    assert list(confirmed([gate], seen, layers)) == [gate]


def test_a_covered_check_that_only_the_test_runner_passes_brings_nothing():
    spec = CheckSpec(id=CHECKS["one"])
    plain = replace(PLAIN, checks={spec.id: ()})
    layers = Layers(canaries=CANARIES, plain=plain)
    passed = CheckResult(spec, Outcome.PASSED)
    (result,) = confirmed([passed], Seen(ran=Ran.FINISHED), layers)
    assert (result.outcome, "test runner" in result.note) == (Outcome.MISSING, True)
