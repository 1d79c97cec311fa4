"""Hidden tests changed for one box: canaries in place of literals, expectations left out."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.audit.plain.sites import find_sites, homes_of
from sandbox.errors import VerifierFault
from sandbox.formats.digest import Entry
from sandbox.grading.variants import OBSERVE, edited, withheld
from sandbox.model.layers import Edit, Plain
from sandbox.model.task import Digest

BUNDLE = Digest("sha256:" + "1" * 64)


def entry(text: str) -> Entry:
    return Entry("t.py", "file", text.encode())


def without(text: str) -> str:
    """With every expectation that can be withheld left out."""
    sites = tuple(f.site for f in find_sites([entry(text)]))
    (made,) = withheld([entry(text)], Plain(bundle=BUNDLE, checks={}, sites=sites))
    return made.data.decode()


def in_test(line: str) -> str:
    return f"def test_a(self):\n    x = f()\n    {line}\n"


@pytest.mark.parametrize(
    ("line", "observed"),
    [
        ("assert f(x) == 'secret'", "f(x)"),
        ("assert 'secret' == f(x)", "f(x)"),
        ("assert f(x) == ['secret', {'a': 1}], x", "f(x)"),
        ("assert f(x) == 'secret'  # 'secret', of course", "f(x)"),
        ("assert f('é', x) == 'secret'", "f('é', x)"),
        ("if x: assert f(x) == 'secret'", "f(x)"),
        ("self.assertEqual(f(x), 'secret')", "f(x)"),
        ("self.assertEqual('secret', f(x), 'secret')", "f(x)"),
        ("y = 'secret'\n    assert f(x) == y", "f(x)"),
        ("y = ['secret']\n    z = f(x)\n    assert z == y", "f(x)"),
        ("z = f(x)\n    # 'secret'\n    y = 'secret'\n    self.assertEqual(y, z)", "f(x)"),
        ("assert f(\n        x,  # 'secret'\n    ) == (\n        'secret'\n    )", "f(x)"),
    ],
)
def test_the_literal_is_gone_and_its_other_side_observed(line: str, observed: str):
    text = in_test(line)
    made = without(text)
    assert "secret" not in made
    assert f"{OBSERVE}('o0', {observed})" in made
    assert made.count("\n") == text.count("\n"), "what a test says of lines stays true"
    ast.parse(made)


@pytest.mark.parametrize(
    "line",
    [
        "assert f(x)",
        "assert not f(x)",
        "assert f(x) == g(x)",
        "assert f(x) != 3",
        "y = 3\n    assert f(y) == y",
        "y = 3\n    x.add(2)\n    assert f(x) == y",
        "y = z = 3\n    assert f(x) == y",
        "assert f(x) == y\n    y = 3",
        "assert 1 == 1",
        "assert (y := f(x)) == 3",
        "assert f(x) == g(x) == 3",
        "assert f(x) is x",
        "assert f(x) == 3; g(x)",
        "self.assertEqual(f(x), second=3)",
        "self.assertTrue(f(x))",
    ],
)
def test_what_cannot_be_withheld_stays_as_it_is(line: str):
    assert without(in_test(line)) == in_test(line)


def test_only_tests_are_looked_at():
    assert find_sites([entry("assert f() == 3\ndef helper():\n    assert f() == 3\n")]) == []
    assert find_sites([entry("def test_a(:\n")]) == []
    assert find_sites([Entry("t.py", "file", b"\xff")]) == []


def test_sites_are_numbered_through_all_files_and_know_their_test():
    text = (
        "class TestA:\n    def test_b(self):\n        assert f() is None\n        assert g() == 1\n"
    )
    found = find_sites([entry(text), Entry("u.py", "file", in_test("assert f() == 2").encode())])
    assert [f.site.key for f in found] == ["o0", "o1", "o2"]
    assert [f.test for f in found] == ["t.py::TestA::test_b"] * 2 + ["u.py::test_a"]
    assert [f.site.expected for f in found] == ["None", "1", "2"]


def test_a_check_of_a_class_may_stand_in_one_that_it_is_made_from():
    bases = {"t.py::TestB": ["t.py::TestA"], "t.py::TestA": ["t.py::TestB"]}
    assert homes_of("t.py::TestB::test_x[1::2]", bases) == [
        "t.py::TestB::test_x",
        "t.py::TestA::test_x",
    ]
    assert homes_of("t.py::test_x[a]", bases) == ["t.py::test_x"]


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\\'"), max_size=8)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=5), st.data())
def test_edits_go_there_and_back(rows: list[list[str]], data: st.DataObject):
    text = "\n".join(", ".join(f"'{word}'" for word in row) for row in rows)
    there = []
    for number, row in enumerate(rows, 1):
        column = 0
        for word in row:
            old = f"'{word}'"
            if data.draw(st.booleans()):
                new = f"'{data.draw(WORDS)}'"
                there.append(Edit(path="t.py", line=number, column=column, old=old, new=new))
            column += len(old) + 2
    made = edited([entry(text)], there)
    shift: dict[int, int] = {}
    back = []
    for e in there:
        column = e.column + shift.get(e.line, 0)
        back.append(Edit(path=e.path, line=e.line, column=column, old=e.new, new=e.old))
        shift[e.line] = shift.get(e.line, 0) + len(e.new) - len(e.old)
    assert edited(made, back) == (entry(text),)


def test_an_edit_that_does_not_fit_is_a_fault_of_ours():
    wrong = Edit(path="t.py", line=1, column=0, old="2", new="3")
    with pytest.raises(VerifierFault, match="is not where it was"):
        edited([entry("1\n")], [wrong])
    with pytest.raises(VerifierFault, match="there is no hidden test"):
        edited([Entry("u.py", "file", b"2")], [wrong])
