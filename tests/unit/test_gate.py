"""What the gate says of a task, from rollouts, files and names: pure rules."""

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.audit.exploits.findings import Finding as Attack
from sandbox.audit.exploits.findings import Result
from sandbox.audit.gate import attacks, said, standing
from sandbox.audit.gate.finding import BY_ID, RULES, finding
from sandbox.audit.gate.levels import SIZES, Sizes, drawn, first_trials, wrong_trials
from sandbox.audit.gate.trials import Trial, narrowed, numbered
from sandbox.audit.gate.unsaid import unsaid
from sandbox.audit.leaks.needles import found_in, needles
from sandbox.audit.mutants.explained import explained, reason
from sandbox.audit.source.trees import Source, by_path
from sandbox.errors import SpecError
from sandbox.formats.digest import Entry
from sandbox.model.layers import Canaries, Edit, Plain, Site, Unit
from sandbox.model.record import FaultRecord, Rollout, VerdictRecord
from sandbox.model.task import CheckSpec, Digest, TaskId, TaskSpec
from tests.support.homes import a_task

BUNDLE = Digest("sha256:" + "1" * 64)
DEFECTS = (CheckSpec(id="one"), CheckSpec(id="two"), CheckSpec(id="gate", gate=True))
BASE = "def count(text):\n    return len(text)\n"
SOLVED = "def count(text):\n    return len(text.split())\n\n\ndef spare():\n    return 1\n"


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return a_task(tmp_path, checks=DEFECTS)


def a_rollout(name: str, *, fault: str = "", **outcomes: str) -> Rollout:
    """Everything passed, but for what is said."""
    checks = {c.id: "passed" for c in DEFECTS} | outcomes
    resolved = set(checks.values()) == {"passed"}
    verdict = VerdictRecord(
        reward=float(resolved), resolved=resolved, reason="" if resolved else "why", checks=checks
    )
    return Rollout(
        task=TaskId("toy-1"),
        task_digest=BUNDLE,
        attempt=0,
        agent=name,
        runtime="fake",
        started="2024-05-15T12:00:00Z",
        verdict=None if fault else verdict,
        fault=FaultRecord(code="runtime", message=fault) if fault else None,
    )


def source(before: str = BASE, after: str = SOLVED) -> Source:
    return Source(*(by_path([Entry("src/a.py", "file", t.encode())]) for t in (before, after)))


GOOD = a_rollout("oracle")
IDLE = a_rollout("nop", one="failed", two="failed")


def test_a_sound_task_has_nothing_said_of_its_agents(task: TaskSpec):
    assert list(said.of_agents(task, GOOD, IDLE)) == []


@pytest.mark.parametrize(
    ("oracle", "nop", "ids"),
    [
        (a_rollout("oracle", one="failed"), IDLE, ["semantic.oracle_max"]),
        (GOOD, GOOD, ["semantic.floor_gap"] * 3),
        (GOOD, a_rollout("nop", one="failed"), ["semantic.floor_gap"]),
        (GOOD, a_rollout("nop", one="failed", two="failed", gate="failed"), ["SR-GATE"]),
        (GOOD, a_rollout("nop", fault="lost"), ["SR-VOID"]),
    ],
)
def test_what_the_agents_show(task: TaskSpec, oracle: Rollout, nop: Rollout, ids: list[str]):
    assert [f.id for f in said.of_agents(task, oracle, nop)] == ids


FAILS = {"one": "failed"}


@pytest.mark.parametrize(
    ("done", "found"),
    [
        ({"reference 1": {}, "reference 2": FAILS},
         ["semantic.oracle_max", "semantic.verifier_determinism"]),
        ({"nothing 1": FAILS, "nothing 2": {}}, ["semantic.verifier_determinism"]),
        ({"reference, bare": {}, "order 1": FAILS}, ["SR-ORDER"]),
        ({"alone: one": {"one": "error", "two": "missing"}}, ["SR-ALONE"]),
        ({"alone: one": {"one": "missing"}}, []),
        ({"control: tabs": FAILS}, ["SR-NARROW"]),
        ({"without src/a.py:1-2": {}}, ["SR-HUNK"]),
        ({"without src/a.py:1-2": FAILS}, []),
        ({"knock-out src/a.py:1: f": {}}, ["SR-KNOCKOUT"]),
        ({"mutant a-1 said": {}, "mutant a-2 said": FAILS}, ["SR-SURVIVOR", "SR-MUTANTS"]),
        ({"mutant known-1 said": {}, "mutant a-2 said": FAILS}, []),
    ],
)  # fmt: skip
def test_what_the_trials_show(done: dict[str, dict[str, str]], found: list[str]):
    rollouts = {name: a_rollout(name, **outcomes) for name, outcomes in done.items()}
    told = said.of_trials(rollouts, {"known-1": "it says the same"})
    assert [f.id for f in told] == found


def test_four_of_five_wrong_versions_are_enough():
    done = {f"mutant a-{n} said": a_rollout("m", **(FAILS if n else {})) for n in range(5)}
    assert [f.id for f in said.of_trials(done, {})] == ["SR-SURVIVOR"]


def test_a_void_trial_is_said_to_be_one_and_counts_for_nothing():
    done = {"reference 1": GOOD, "mutant a-1 said": a_rollout("mutant a-1", fault="gone")}
    (told,) = said.of_trials(done, {})
    assert told.id == "SR-VOID"
    assert "gone" in told.evidence


def test_every_kind_of_finding_has_its_own_id_and_only_errors_lack_no_hint():
    assert len(BY_ID) == len(RULES)
    assert all(r.hint for r in RULES if r.severity != "info")
    assert len(finding("SR-HUNK", "x" * 1000).evidence) == 400


def test_each_level_has_all_of_the_one_below(task: TaskSpec):
    names = [
        {t.name for t in first_trials(task, source(), SIZES[level])}
        for level in ("quick", "usual", "full")
    ]
    assert names[0] < names[1] < names[2]
    assert {"reference 5", "nothing 5", "order 4", "alone: gate"} <= names[2]


def test_wrong_versions_end_with_the_first_failure_where_that_can_be(task: TaskSpec):
    sizes = Sizes(hunks=9, knockouts=9, mutants=9)
    found = list(wrong_trials(source(), sizes, seconds=16, without=("broken test",)))
    assert {n.name.split(" ")[0] for n in found} == {"without", "knock-out", "mutant"}
    told = narrowed(task, found[0]).verifier
    assert told.options["addopts"] == "-x '--deselect=broken test'"
    assert told.seconds == 16
    whole = next(wrong_trials(source(), sizes, seconds=99, without=None))
    assert narrowed(task, whole).verifier == task.verifier


def test_one_check_alone_is_all_that_is_run(task: TaskSpec):
    alone = Trial(name="alone: one", files={}, only="one")
    assert narrowed(task, alone).verifier.arguments == ("one",)


def test_a_trial_keeps_its_number_whatever_is_tried_beside_it(task: TaskSpec):
    few = list(first_trials(task, source(), SIZES["usual"]))
    many = list(first_trials(task, source(), SIZES["full"]))
    assert numbered(few).items() <= numbered(many).items()
    assert len(set(numbered(many).values())) == len(many)
    other = numbered(list(first_trials(task, source(after=SOLVED + "\n"), SIZES["usual"])))
    assert other["nothing 1"] == numbered(few)["nothing 1"]
    assert other["reference 1"] != numbered(few)["reference 1"]


def test_the_same_few_are_drawn_and_stay_in_order():
    found = drawn(list(range(50)), 7)
    assert found == sorted(found) == drawn(list(range(50)), 7)
    assert drawn([1, 2], 7) == [1, 2]


def test_names_that_nobody_mentions_are_told():
    tests = b"from a import spare\nimport a\n\ndef test_x():\n    a.count(text='x', limit=1)\n    a.spare()\n"
    hidden = [Entry("tests/test_a.py", "file", tests)]
    repository = [Entry("src/a.py", "file", BASE.encode())]
    assert unsaid(source(), repository, hidden, "Count.") == ["spare"]
    assert unsaid(source(), repository, hidden, "Add a function `spare`.") == []


def test_checks_without_canaries_are_counted_with_the_reasons(task: TaskSpec):
    edit = Edit(path="t.py", line=1, column=0, old="1", new="2")
    unit = Unit(name="t", edits=(edit,), checks={"one": "one"})
    few = Canaries(bundle=BUNDLE, units=(unit,), uncovered={"two": "has no literal"})
    told = next(f for f in standing.of_canaries(task, few) if f.id == "SR-CANARY")
    assert told.evidence == "1 of 3 checks have a canary: has no literal; no reason given"
    each = [Unit(name=c.id, edits=(edit,), checks={c.id: c.id}) for c in DEFECTS]
    assert list(standing.of_canaries(task, Canaries(bundle=BUNDLE, units=tuple(each)))) == []


def test_what_can_be_forged_should_earn_nothing_by_itself(task: TaskSpec):
    scored = [c for c in task.verifier.checks if not c.gate]
    gate = next(c for c in task.verifier.checks if c.gate)
    edit = Edit(path="t.py", line=1, column=0, old="1", new="2")

    def told(*checks: str, without: str = "") -> list[str]:
        unit = Unit(name="t", edits=(edit,), checks={c: c for c in checks})
        held = (replace(c, weight=0.0) if c.id == without else c for c in task.verifier.checks)
        spec = replace(task, verifier=replace(task.verifier, checks=tuple(held)))
        found = standing.of_canaries(spec, Canaries(bundle=BUNDLE, units=(unit,)))
        return [f.evidence.split()[0] for f in found if f.id == "SR-UNPROVED"]

    every = [c.id for c in scored]
    assert told(*every) == []
    assert told(*every[1:]) == [every[0]]
    assert told(*every[1:], without=every[0]) == []
    # The gate passed before: its row tells the coin of the others.
    assert told(*every, gate.id) == every


@pytest.mark.parametrize(
    ("expected", "hard"),
    [((), 0), (("None", "True"), 0), (("0",), 0), (("0", "1"), 1), (("'xyz'",), 1)],
)
def test_what_earns_a_part_by_its_outcome_alone_is_named(
    task: TaskSpec, expected: tuple[str, ...], hard: int
):
    one, two = [c for c in task.verifier.checks if not c.gate][:2]
    place = {"line": 1, "column": 0, "end_line": 1, "end_column": 5}
    sites = tuple(Site(key=e, path="t.py", source="f()", expected=e, **place) for e in expected)
    plain = Plain(bundle=BUNDLE, checks={one.id: expected}, sites=sites)

    def told(*weights: float) -> list[str]:
        held = tuple(replace(c, weight=w) for c, w in zip((one, two), weights, strict=True))
        spec = replace(task, verifier=replace(task.verifier, checks=held))
        return [f.evidence for f in standing.of_unshown(spec, plain)]

    none = [] if hard else ["none of the scored checks: a guess may have full marks"]
    assert told(1.0, 0.0) == ([] if hard else [*none, f"{one.id} weighs 1"])
    assert told(0.0, 2.0) == [*none, f"{two.id} weighs 2"]
    assert told(0.0, 0.0) == none


def test_expectations_that_can_be_guessed_are_counted():
    def site(expected: str) -> Site:
        place = {"line": 1, "column": 0, "end_line": 1, "end_column": 5}
        return Site(key=expected, path="t.py", source="f()", expected=expected, **place)

    plain = Plain(bundle=BUNDLE, checks={}, sites=(site("true"), site("'a long answer'")))
    (told,) = standing.of_expectations(plain)
    assert told.id == "SR-BITS"
    assert "2 expectations" in told.evidence
    assert "1 of one bit" in told.evidence


def test_survivors_are_explained_in_a_file_of_the_task(task: TaskSpec):
    path = Path(task.home) / "verifiers" / task.id / "mutants.yaml"
    assert explained(task) == {}
    path.write_text("schema: 1\nexplained:\n  - id: a-1\n    reason: the same\n")
    assert explained(task) == {"a-1": "the same"}
    path.write_text("schema: 1\nexplained:\n  - id: a-1\n")
    with pytest.raises(SpecError):
        explained(task)
    for neither in ("reason: x", "id: a-1\n    path: a.py\n    reason: x"):
        path.write_text(f"schema: 1\nexplained:\n  - {neither}\n")
        with pytest.raises(SpecError, match="an `id`, or a `path`") as refused:
            explained(task)
        assert refused.value.where == f"{path}:3"


def test_a_whole_file_is_explained_at_once(task: TaskSpec):
    path = Path(task.home) / "verifiers" / task.id / "mutants.yaml"
    path.write_text("schema: 1\nexplained:\n  - path: toy/cli.py\n    reason: not asked for\n")
    assert reason(explained(task), "a-1 toy/cli.py:3: `1` as `2`") == "not asked for"
    assert reason(explained(task), "a-1 toy/cli.pyx:3: `1` as `2`") is None


def test_one_common_line_is_no_trace_and_two_are():
    lines = ["        return the_first_of_all(words, most=limit, kept=3)", "    " + "a" * 50]
    made = source(after=BASE + "".join(f"{x}\n" for x in lines) + "")
    wanted = needles(made, [], [], {b"/secret": "a secret place"})
    assert len(wanted.lines) == 2
    one, two = lines[0].encode(), "\n".join(lines).encode()
    assert list(found_in("a", one, wanted)) == []
    assert len(list(found_in("a", two, wanted))) == 1
    assert list(found_in("a", b"x /secret x", wanted)) == ["a holds a secret place"]


def an_attack(result: Result) -> Attack:
    return Attack(
        task=TaskId("toy-1"),
        exploit="exit-0",
        family="exits",
        scope="repo",
        result=result,
        reward=1.0,
        said=("why",),
    )


def test_an_exploit_that_pays_keeps_the_task_out_and_the_others_are_counted():
    found = attacks.told([an_attack(r) for r in ("gain", "harmless", "detected", "void")])
    assert [f.id for f in found] == ["SR-EXPLOIT", "SR-VOID", "SR-ATTACKED"]
    assert found[0].evidence == "exit-0: gain, reward 1.0 where nothing gets 0.0; why"
    assert found[-1].evidence == "4 exploits: 1 detected, 1 gain, 1 harmless, 1 void"


def test_it_is_told_when_most_exploits_could_not_be_tried():
    untried = [an_attack("unperformed")] * 2
    assert attacks.told([*untried, an_attack("harmless")])[-1].id == "SR-UNTRIED"
    assert attacks.told([*untried, *[an_attack("harmless")] * 2])[-1].id == "SR-ATTACKED"
