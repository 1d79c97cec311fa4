"""How a run ended, in words, and that nothing the code under test does is anybody else's fault."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.grading.ending import how_it_ended
from sandbox.grading.readout import read_out
from sandbox.model.task import VerifierSpec
from sandbox.model.verdict import Outcome, Ran
from sandbox.runtime.base import ExecResult
from tests.support.homes import a_task


def output(*lines: tuple[str, object]) -> bytes:
    return b"".join(f"{sender}{json.dumps(record)}\n".encode() for sender, record in lines)


BEGUN = (".", {"begin": "t.py::a"})
OVER = (".", {"check": "t.py::a", "outcome": "passed"})
END = (".", {"end": 0, "seconds": 1})
BOX_ENDED = ExecResult(exit_code=137, stdout=b"", stderr=b"", limit="the disk limit was reached")


def ended(how: str = "exited", code: int = 0) -> tuple[str, object]:
    return "!", {"ended": how, "exit": code, "others": 1, "runs": 1, "seconds": 2}


@pytest.fixture
def spec(tmp_path: Path) -> VerifierSpec:
    return replace(a_task(tmp_path).verifier, check_seconds=2.0)


@pytest.mark.parametrize(
    ("lines", "ran", "detail"),
    [
        ((BEGUN, OVER, END, ended()), Ran.FINISHED, ""),
        ((BEGUN, ended()), Ran.CRASHED, "ended early with exit code 0, during t.py::a"),
        ((BEGUN, OVER, END, ended(code=3)), Ran.CRASHED, "code 3, after it had said 0"),
        ((BEGUN, ended(code=139)), Ran.CRASHED, "ended by SIGSEGV, during t.py::a"),
        ((OVER, END, ended(code=128 + 33)), Ran.CRASHED, "ended by signal 33"),
        ((OVER, END, ended("flooded", 137)), Ran.CRASHED, "told more than any suite"),
        ((OVER, END, ended("stopped", 137)), Ran.CRASHED, "did not go on"),
        ((OVER, END, ended("overran", 137)), Ran.CRASHED, "too many checks"),
        ((BEGUN, ended("timed out", 137)), Ran.TIMED_OUT, "more than 60 s, during t.py::a"),
        ((".", {"uncollected": "b.py"}), Ran.CRASHED, "the box was ended early"),
    ],
)
def test_each_end_has_its_name(spec, lines, ran, detail):
    told = read_out(output(*(lines if isinstance(lines[0], tuple) else [lines])))
    done = ExecResult(exit_code=0, stdout=b"", stderr=b"")
    found = how_it_ended(spec, done, told, moved=False)
    assert found[0] is ran
    assert detail in found[1]


def test_a_box_that_was_stopped_for_a_limit_says_which(spec):
    found = how_it_ended(spec, BOX_ENDED, read_out(output(BEGUN)), moved=False)
    assert found[0] is Ran.CRASHED
    assert "exit code 137): the disk limit was reached, during t.py::a" in found[1]


def test_a_box_that_moved_counts_only_where_all_else_is_as_it_should_be(spec):
    done = ExecResult(exit_code=0, stdout=b"", stderr=b"")
    for lines, says in (((OVER, END, ended()), "stand still"), ((ended(code=9),), "code 9")):
        assert says in how_it_ended(spec, done, read_out(output(*lines)), moved=True)[1]


def test_only_the_supervisor_can_say_how_the_runner_ended_and_what_took_too_long():
    forged = {"ended": "exited", "exit": 0, "others": 0}
    found = read_out(output((".", forged), (".", {"overran": "x"}), ("", forged), (" !", forged)))
    assert (found.ended, found.report, found.overran) == (None, {}, [])


def test_a_check_that_took_too_long_has_failed_whatever_is_told_of_it():
    late = ("!", {"overran": "a", "seconds": 2})
    for lines in ((OVER, late), (late, OVER)):
        found = read_out(output(*lines, ("!", {"overran": "t.py::a", "seconds": 2})))
        assert found.report["t.py::a"].outcome is Outcome.FAILED
        assert found.report["a"].message == "it took more than 2 s"


def test_what_was_observed_is_kept_once_each_and_not_for_ever():
    told = [(".", {"observe": "k", "value": str(n % 40)}) for n in range(80)]
    long = (".", {"observe": "long", "value": "x" * 100_000})
    odd = [(".", {"observe": k, "value": v}) for k, v in ((1, "a"), ("a", 1), (None, None))]
    found = read_out(output(*told, *told, long, *odd, (".", {"observe": "\ud800", "value": ""})))
    assert found.observed["k"] == tuple(map(str, range(16)))
    assert len(found.observed["long"][0]) == 1 << 16
    assert set(found.observed) == {"k", "long", "\\ud800"}


def test_a_name_is_told_only_so_far():
    long = "x" * 100_000
    found = read_out(output((".", {"begin": long}), (".", {"uncollected": long})))
    assert (len(found.running), [len(n) for n in found.uncollected]) == (1000, [1000])
