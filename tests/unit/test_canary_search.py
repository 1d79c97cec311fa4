"""The search for canaries, with tests that run in this process."""

from collections.abc import Collection, Sequence

import pytest

from sandbox.audit.canary.items import by_assertion, row_groups, told_as
from sandbox.audit.canary.literals import Function, read_files
from sandbox.audit.canary.places import Literal
from sandbox.audit.canary.propose import vocabulary
from sandbox.audit.canary.search import Search
from sandbox.grading.variants import edited
from sandbox.model.layers import Edit
from sandbox.model.verdict import CheckReport, Outcome, Ran, Seen
from tests.support.minisuite import MiniSuite


def search(
    suite: MiniSuite,
    *,
    data: bool = False,
    scored: Collection[str] = (),
    only: Collection[str] = (),
) -> Search:
    """All of it, as far as functions, data files and what they share go."""
    files = read_files(suite.entries)
    literals: list[Literal] = [
        x
        for file in files.values()
        for f in (*file.functions.values(), *file.shared.values())
        for x in f.literals
    ]
    usual = suite([]).report
    made = Search(
        files=files,
        entries=suite.entries,
        known=vocabulary(literals),
        usual=usual,
        checks=[c for c, told in usual.items() if told.outcome is Outcome.PASSED],
        run=suite,
        note=lambda *_: None,
        scored=scored,
        only=only,
    )
    made.prepare()
    made.try_functions()
    if data:
        made.try_data()
    made.try_shared()
    return made


def covered(made: Search) -> set[str]:
    return {check.partition("::")[2] for q in made.quests.values() for check in q.covered}


def kept(made: Search) -> list[Edit]:
    return [e for q in made.quests.values() for e in q.kept()]


def test_each_test_gets_an_edit_that_makes_it_fail_by_an_assertion():
    suite = MiniSuite(
        {"a.py": "def test_a():\n    assert up('x') == 'X'\ndef test_b():\n    assert up('y') == 'Y'\n"},
        up=str.upper,
    )  # fmt: skip
    made = search(suite)
    assert covered(made) == {"test_a", "test_b"}
    told = suite(kept(made)).report
    assert all(by_assertion(report) for report in told.values())


def test_what_raises_is_no_canary_and_something_else_is_tried():
    suite = MiniSuite(
        {"a.py": "def test_a():\n    n = number('12')\n    assert n > 0\n    assert n != 47\n"},
        number=lambda text: {"12": 12, "47": 47}[text],
    )
    made = search(suite)
    assert covered(made) == {"test_a"}


def test_each_row_has_an_edit_of_its_own():
    rows = "import re\n@pytest.mark.parametrize('a,b', [('p', 'P'), ('q', 'Q'), ('r', 'R')])\n"
    suite = MiniSuite({"a.py": f"{rows}def test_a(a, b):\n    assert up(a) == b\n"}, up=str.upper)
    made = search(suite)
    assert len(covered(made)) == 3
    assert len(kept(made)) == 3
    assert len(made.quests) == 1


def test_an_edit_with_which_the_file_cannot_be_loaded_spoils_nothing_else():
    good = "".join(f"def test_{n}():\n    assert up('{n}') == '{n.upper()}'\n" for n in "abcde")
    bad = "@pytest.mark.parametrize('v', [only(5)])\ndef test_v(v):\n    assert v == v\n"

    def only(number: int) -> int:
        if number != 5:
            raise ValueError
        return number

    made = search(MiniSuite({"a.py": bad + good}, up=str.upper, only=only))
    assert covered(made) == {"test_a", "test_b", "test_c", "test_d", "test_e"}


def test_a_table_that_several_tests_read_makes_them_one_unit():
    table = "WANT = {'k': 'x'}\n"
    tests = "".join(
        f"def test_{n}():\n    assert up() == next(iter(WANT.values()))\n" for n in "ab"
    )
    made = search(MiniSuite({"a.py": table + tests}, up=lambda: "x"))
    assert covered(made) == {"test_a", "test_b"}
    assert [q.name for q in made.quests.values()] == ["a.py::WANT"]
    assert all(not found.strict for q in made.quests.values() for found in q.covered.values())


def reading(data: dict[str, str]) -> MiniSuite:
    """Two tests of one file, whose rows are named after data files that they read."""
    read = "@pytest.mark.parametrize('name', NAMES)\ndef test_{}(name):\n    assert load(name) == loud(name)\n"
    files = {"a.py": "NAMES = list(WANT)\n" + read.format("a") + read.format("b")}

    class WithData(MiniSuite):
        def __call__(self, edits: Sequence[Edit], *, paths: Sequence[str] = ()) -> Seen:
            there = {e.path: e.data.decode() for e in edited(self.entries, edits)}
            self.given["load"] = lambda name: there[f"data/{name}.json"]
            return super().__call__(edits, paths=paths)

    want = {name: data[f"data/{name}.json"] for name in ("one", "two")}
    return WithData(files | data, WANT=want, loud=want.__getitem__)


DATA = {"data/one.json": '{"k": "red"}\n', "data/two.json": '{"k": "blue"}\n'}


def test_a_data_file_that_a_row_is_named_after_is_edited_for_one_unit_alone():
    made = search(reading(DATA), data=True)
    assert covered(made) == {"test_a[one]", "test_a[two]"}
    assert {e.path for e in kept(made)} == set(DATA)


def test_where_some_files_are_asked_for_no_other_is_edited():
    """Who else reads them is not seen to fail."""
    made = search(reading(DATA), data=True, only={"a.py"})
    assert kept(made) == []
    some = search(reading(DATA), data=True, only={"a.py", "data/one.json"})
    assert {e.path for e in kept(some)} == {"data/one.json"}


def test_a_check_for_which_nothing_works_is_left():
    made = search(MiniSuite({"a.py": "def test_a():\n    assert len('x') == len('y')\n"}))
    assert covered(made) == set()
    (quest,) = made.quests.values()
    assert quest.tries


def test_where_the_run_is_cut_short_the_test_that_ended_it_is_to_blame():
    class Cut(MiniSuite):
        """Ends where `up` is given anything but what it was."""

        def __call__(self, edits: Sequence[Edit], *, paths: Sequence[str] = ()) -> Seen:
            seen = super().__call__(edits, paths=paths)
            if not any(e.old == "'stop'" for e in edits):
                return seen
            first = [item for item in seen.report if "test_a" in item or "test_b" in item]
            report = {item: seen.report[item] for item in first if "test_b" not in item}
            return Seen(ran=Ran.CRASHED, report=report)

    source = (
        "def test_a():\n    assert up('a') == 'A'\n"
        "def test_b():\n    assert up('stop')\n"
        "def test_c():\n    assert up('c') == 'C'\n"
    )
    made = search(Cut({"a.py": source}, up=str.upper))
    assert covered(made) == {"test_a", "test_c"}


def test_rows_are_told_apart_by_the_order_of_loops():
    function = Function(path="a.py", name="test_a", literals=(), shape=(2, 3))
    items = [f"a.py::test_a[{n}]" for n in range(6)]
    groups = row_groups(function, items)
    assert groups[items[0]] == ((), (0, 0), (1, 0))
    assert groups[items[4]] == ((), (0, 1), (1, 1))
    assert row_groups(function, items[:5])[items[0]] == ((), (0, 0))


def test_a_row_whose_id_changes_is_known_by_its_place():
    before = ["a.py::test_a[p]", "a.py::test_b", "a.py::test_a[q]"]
    after = ["a.py::test_a[z]", "a.py::test_b", "a.py::test_a[q]"]
    assert told_as(before, after) == dict(zip(before, after, strict=True))
    assert told_as(before, after[:2]) == {"a.py::test_b": "a.py::test_b"}


@pytest.mark.parametrize(
    ("message", "right"),
    [
        ("AssertionError: 1 != 2", True),
        ("assert 1 == 2", True),
        ("Failed: DID NOT RAISE <class 'ValueError'>", True),
        ("ValueError: no", False),
        ("", False),
    ],
)
def test_only_an_assertion_is_what_a_canary_fails_by(message: str, *, right: bool):
    assert by_assertion(CheckReport(outcome=Outcome.FAILED, message=message)) is right
    assert not by_assertion(CheckReport(outcome=Outcome.ERROR, message=message))
    assert not by_assertion(None)


@pytest.mark.parametrize(
    ("message", "right"),
    [
        ("TypeError: unsupported", True),
        ("package.errors.TypeError: unsupported", True),
        ("TypeError", True),
        ("TypeErrors: unsupported", False),
        ("NameError: name 'TypeError' is not defined", False),
    ],
)
def test_an_error_that_was_expected_before_the_edit_is_what_its_test_is_about(message, right):
    report = CheckReport(outcome=Outcome.FAILED, message=message)
    assert by_assertion(report, {"TypeError"}) is right
    assert not by_assertion(report)


@pytest.mark.parametrize(
    ("message", "right"),
    [
        ("lib.errors.OddError: 3 is odd", True),
        ("NameError: name 'lib' is not defined", False),
        ("TypeError: expected exception must be a class", False),
        ("StopIteration", False),
    ],
)
def test_a_kind_of_the_error_that_was_expected_goes_through_as_well(message, right):
    report = CheckReport(outcome=Outcome.FAILED, message=message)
    assert by_assertion(report, {"LibError"}) is right
    assert not by_assertion(report, {"Style"})
