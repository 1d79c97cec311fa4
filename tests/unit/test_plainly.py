"""What a plain run has to show, and when what it was told is what is expected."""

import importlib.util
import sys
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.grading.judge import judge
from sandbox.grading.observed import agrees, bits, encoded
from sandbox.grading.plainly import disagreements
from sandbox.model.layers import Layers, Plain, Site
from sandbox.model.task import BundleSpec, CheckSpec, Digest, VerifierSpec
from sandbox.model.verdict import CheckReport, Evidence, Outcome, Ran, Seen

ENCODER = Path(__file__).resolve().parents[2] / "verifiers" / "_runners" / "plain_encode.py"
BUNDLE = Digest("sha256:" + "1" * 64)
ONE, TWO = "t.py::test_one", "t.py::test_two"
SITE = Site(
    key="o0", path="t.py", line=3, column=4, end_line=3, end_column=20, source="f()", expected="3"
)
PLAIN = Plain(bundle=BUNDLE, checks={ONE: ("o0",)}, sites=(SITE,), left={TWO: "asynchronous"})
BOTH = Layers(withheld=PLAIN, plain=PLAIN)
PASSED = CheckReport(outcome=Outcome.PASSED)
SPEC = VerifierSpec(
    bundle=BundleSpec(digest=BUNDLE, folder="bundle"),
    runner="pytest",
    arguments=("t.py",),
    options={},
    checks=(CheckSpec(id=ONE), CheckSpec(id=TWO)),
    seconds=60,
)


def shown(told: tuple[str, ...] = ("3",), outcome: Outcome = Outcome.PASSED) -> Seen:
    report = {ONE: CheckReport(outcome=outcome)}
    return Seen(ran=Ran.FINISHED, report=report, observed={"o0": told} if told else {})


def flags(plain: Seen | None, spec: VerifierSpec = SPEC) -> tuple[str, ...]:
    passed = {c.id: PASSED for c in spec.checks}
    evidence = Evidence(ran=Ran.FINISHED, report=passed, plain=plain)
    return judge(spec, evidence, BOTH).flags


def test_what_agrees_has_no_flag():
    assert flags(shown()) == ()


def test_without_a_plain_run_nothing_is_proved():
    assert flags(None) == ("unproved",)


@pytest.mark.parametrize(
    "seen",
    [
        shown(outcome=Outcome.FAILED),
        shown(told=()),
        shown(told=("4",)),
        shown(told=("3", "4")),
        shown(told=("!AlwaysEqual",)),
        Seen(ran=Ran.CRASHED),
    ],
)
def test_what_shows_otherwise_is_dependent_on_the_tests(seen: Seen):
    assert flags(seen) == ("test-dependent",)


def partly(told: tuple[str, ...], plain: Plain) -> float:
    """What ONE is worth where TWO, of as much weight, has failed."""
    report = {ONE: PASSED, TWO: CheckReport(outcome=Outcome.FAILED)}
    evidence = Evidence(ran=Ran.FINISHED, report=report, plain=shown(told=told))
    return judge(SPEC, evidence, Layers(withheld=plain, plain=plain)).reward


def test_of_a_part_every_value_has_to_be_what_is_expected():
    assert partly(("3",), PLAIN) == partly(("3", "3.0"), PLAIN) == 0.5
    assert partly(("1", "2", "3", "4"), PLAIN) == partly((), PLAIN) == 0


def test_where_a_check_that_shares_the_assertion_failed_one_value_is_enough():
    shared = replace(PLAIN, checks={ONE: ("o0",), TWO: ("o0",)}, left={})
    assert partly(("2", "3"), shared) == 0.5
    assert partly(("2", "4"), shared) == 0


def test_where_another_row_failed_one_value_is_enough():
    rows = replace(PLAIN, left={f"{ONE}[5]": "asynchronous"})
    assert partly(("2", "3"), rows) == 0.5


@pytest.mark.parametrize(
    ("expected", "told", "enough"),
    [
        (("'ok'",), ("'ok'", "'no'"), True),
        (("'ok'",), ("'ok'", *(f"'{n}'" for n in range(10, 25))), False),
        (("'something'",), ("'something'", *(f"'{n}'" for n in range(15))), True),
        (("True",) * 8, ("True", "False"), False),
        (("True",) * 8, ("True",), True),
        (("True",), ("True", "False"), True),
    ],
)
def test_where_one_is_enough_many_values_are_many_tries(
    expected: tuple[str, ...], told: tuple[str, ...], *, enough: bool
):
    """Of what nobody guesses: of a mere true or false, nothing else could be asked."""
    sites = tuple(replace(SITE, key=f"o{n}", expected=e) for n, e in enumerate(expected))
    keys = tuple(site.key for site in sites)
    plain = replace(PLAIN, checks={ONE: keys, TWO: keys}, sites=sites, left={})
    report = {ONE: PASSED, TWO: CheckReport(outcome=Outcome.FAILED)}
    seen = replace(shown(), observed=dict.fromkeys(keys, told))
    evidence = Evidence(ran=Ran.FINISHED, report=report, plain=seen)
    verdict = judge(SPEC, evidence, Layers(withheld=plain, plain=plain))
    assert verdict.reward == (0.5 if enough else 0)


def test_a_check_that_the_spec_does_not_name_does_not_count():
    spec = replace(SPEC, checks=(CheckSpec(id=TWO),))
    assert flags(shown(told=("4",), outcome=Outcome.FAILED), spec) == ()


def test_an_outcome_that_the_spec_accepts_is_a_pass_here_too():
    spec = replace(SPEC, checks=(CheckSpec(id=ONE, accept=("skipped",)),))
    assert flags(shown(outcome=Outcome.SKIPPED), spec) == ()


def test_what_is_otherwise_is_said_in_words():
    (said,) = disagreements(SPEC, shown(told=("4",)), BOTH)
    assert said == "t.py:3: `f()` is 4, not 3"


@pytest.mark.parametrize(
    ("told", "expected"), [("3.0", "3"), ("True", "1"), ("{'b': 1, 'a': 2}", "{'a': 2, 'b': 1}")]
)
def test_what_python_calls_equal_agrees(told: str, expected: str):
    assert agrees(told, expected)


@pytest.mark.parametrize("told", ["!C", "'3'", "[3]", "3 ", "__import__('os')", "(" * 9999, "4"])
def test_what_it_does_not_call_equal_does_not(told: str):
    assert agrees(told, "3") is (told == "3 ")


def test_a_guess_at_true_or_false_is_one_bit():
    assert bits("True") == bits("None") == 1
    assert bits("'abc'") > 1


def encoder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("plain_encode", ENCODER)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ENCODE = encoder().encode
SIMPLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text()
    | st.binary()
)
KEYS = st.booleans() | st.integers() | st.text() | st.binary() | st.tuples(st.integers())
VALUES = st.recursive(
    SIMPLE,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(KEYS, inner)
        | st.sets(KEYS)
        | st.frozensets(KEYS)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_runner_and_host_write_every_value_alike(value: Any):
    assert ENCODE(value) == encoded(value)
    assert agrees(ENCODE(value), encoded(value))


def test_long_numbers_are_written_alike():
    assert ENCODE(-(7**9000)) == encoded(-(7**9000)) != encoded(-(7**9001))


class Spoof(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return "'right'"

    __str__ = __format__ = __iter__ = __len__ = __repr__  # type: ignore[assignment]


class Meta(type):
    @property
    def __mro__(cls) -> Any:
        return (str, object)

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        return "'right'"


class Other(metaclass=Meta):
    __class__ = str  # type: ignore[assignment]


class Pair(NamedTuple):
    a: int
    b: str


class Colour(IntEnum):
    RED = 3


def test_no_method_of_a_value_has_a_say():
    assert ENCODE(Spoof("wrong")) == "'wrong'"
    assert ENCODE([Spoof("wrong")]) == "['wrong']"
    assert ENCODE(Other()) == "!Other"


def test_what_is_a_plain_value_underneath_is_told_as_that():
    assert ENCODE(Pair(1, "x")) == "(1, 'x')"
    assert ENCODE(Colour.RED) == "3"


def test_what_has_no_end_is_told_so():
    endless: list[Any] = []
    endless.append(endless)
    assert ENCODE(endless) == ENCODE("x" * 50_000) == ENCODE([0] * 50_000) == "!more"
    deep: Any = 0
    for _ in range(sys.getrecursionlimit() * 2):
        deep = [deep]
    assert ENCODE(deep) == "!more"
