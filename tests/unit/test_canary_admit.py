"""Canaries held against chance and wrong solutions."""

from collections.abc import Callable, Sequence
from typing import Any

from sandbox.audit.canary.admit import FORGIVES, SPOILS, WITHOUT, Admission
from sandbox.audit.canary.mutants import mutants
from sandbox.audit.canary.search import Search
from sandbox.formats.digest import Entry
from sandbox.model.layers import Edit
from sandbox.model.verdict import Seen
from tests.support.minisuite import MiniSuite
from tests.unit.test_canary_search import covered, search

RIGHT, WRONG = b"right", b"wrong"


class MiniBench:
    """A patch says which code the tests find."""

    def __init__(self, source: str, codes: dict[bytes, Callable[..., Any]]) -> None:
        self.suites = {patch: MiniSuite({"a.py": source}, f=code) for patch, code in codes.items()}

    def run(self, edits: Sequence[Edit], patch: bytes, paths: Sequence[str] = ()) -> Seen:
        return self.suites[patch](edits, paths=paths)

    def run_all(self, pairs: Sequence[tuple[Sequence[Edit], bytes]]) -> list[Seen]:
        return [self.run(*pair) for pair in pairs]


def admitted(
    source: str, right: Callable[..., Any], wrong: Callable[..., Any], name: str = "mutant 1"
) -> tuple[Search, Admission]:
    bench = MiniBench(source, {RIGHT: right, WRONG: wrong})
    found = search(bench.suites[RIGHT])
    made = Admission(
        search=found, bench=bench, solution=RIGHT, wrong={name: WRONG}, note=lambda *_: None
    )
    made.admit()
    return found, made


def test_what_compares_with_a_literal_holds_against_every_wrong_solution():
    found, made = admitted("def test_a():\n    assert f('x') == 'X'\n", str.upper, lambda _: "X")
    assert covered(found) == {"test_a"}
    assert (made.mutant_pairs, made.forgiven, made.reasons) == (1, 0, {})


def test_a_canary_that_a_wrong_solution_passes_goes_and_the_check_is_named():
    source = "def test_a():\n    assert f('xylophone').isupper()\ndef test_b():\n    assert f('12') == '12'\n"
    found, made = admitted(source, str.upper, lambda text: text.upper() + "X")
    assert covered(found) == {"test_b"}
    (reason,) = made.reasons.values()
    assert reason == FORGIVES
    assert made.forgiven > 0


def test_so_does_one_that_passes_without_the_solution():
    source = "def test_a():\n    assert f('xylophone').isupper()\ndef test_b():\n    assert f('12') == '12'\n"
    _, made = admitted(source, str.upper, lambda text: text.upper() + "X", "")
    assert set(made.reasons.values()) == {WITHOUT}


def test_a_canary_that_expects_what_the_old_code_says_goes_for_another_one():
    """An error that is both, the old one and the one that is asked for, is right: it would be accused."""
    source = (
        "def test_a():\n    assert f('12') == '12'\ndef test_b():\n    assert f('47') == '47'\n"
    )
    first, _ = admitted(source, str, lambda _: None)
    (edit, *_) = first.quests["a.py::test_a"].kept()
    old = edit.new.strip("'")
    found, made = admitted(source, str, lambda _: old, "")
    assert edit not in found.quests["a.py::test_a"].kept()
    assert WITHOUT in made.reasons.values()


def test_a_canary_that_spoils_another_test_goes():
    source = (
        "STATE = []\n"
        "def test_a():\n    STATE.append(1)\n    assert f('x') == 'X'\n    STATE.clear()\n"
        "def test_b():\n    assert f('y') == 'Y'\n    assert not STATE\n"
        "def test_c():\n    assert f('z') == 'Z'\n    assert not STATE\n"
        "def test_d():\n    assert f('w') == 'W'\n    assert not STATE\n"
    )
    found, made = admitted(source, str.upper, str.lower)
    assert covered(found) == {"test_b", "test_c", "test_d"}
    assert made.reasons == {"a.py::test_a": SPOILS}


def test_so_does_one_that_spoils_another_row_of_its_own_test():
    source = (
        "import re\nSTATE = []\n"
        "@pytest.mark.parametrize('a,b', [('re', 'RE'), (re, re)])\n"
        "def test_a(a, b):\n"
        "    STATE.append(b)\n    assert b is re or f(a) == b\n"
        "    assert STATE[not STATE] == f(re.__name__)\n    if b is re: STATE.clear()\n"
    )
    found, made = admitted(source, str.upper, str.lower)
    assert SPOILS in made.reasons.values()
    assert covered(found) == set()


def test_mutants_are_the_same_every_time_and_each_differs_in_one_file():
    source = b"def f(n):\n    if n > 1:\n        return n == 2\n    return 3\n"
    base = [Entry("a.py", "file", b"def f(n): return 0\n"), Entry("b.py", "file", source)]
    solution = [Entry("a.py", "file", source), Entry("b.py", "file", source)]
    made = mutants(base, solution, 6)
    assert made == mutants(base, solution, 6)
    assert len(made) == 6
    for entries in made:
        assert sum(a != b for a, b in zip(entries, solution, strict=True)) == 1
        for entry in entries:
            compile(entry.data, entry.path, "exec")
    near = sum(entries[0] != solution[0] for entries in made)
    assert near == 3
    assert mutants([], [], 6) == []
