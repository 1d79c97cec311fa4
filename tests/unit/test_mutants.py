"""Wrong versions of a reference solution, and the solution without a part of it."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.audit.mutants.knockout import knockouts
from sandbox.audit.mutants.sites import mutants
from sandbox.audit.source.edits import Edit, Places, edited
from sandbox.audit.source.trees import Source, by_path
from sandbox.formats.digest import Entry

PATH = "a.py"
BASE = "def f(x):\n    return x\n\n\ndef untouched(x):\n    return x + 1\n"
SOLVED = '''def f(x: int = 3) -> str:
    """Say it. 3 < 4"""
    if x < 3 and not x == 1:
        return None
    y: "int" = x * 2
    return "ä" + str(y)


def untouched(x):
    return x + 1


def later():
    raise NotImplementedError


def complain(parser):
    parser.add(3, help="not said in a test")
    raise ValueError("nor is this")


def spell(): return [1]
'''


def source(before: str, after: str) -> Source:
    return Source(*(by_path([Entry(PATH, "file", t.encode())]) for t in (before, after)))


FOUND = mutants(source(BASE, SOLVED))


def test_every_kind_of_change_is_made_once_at_each_place():
    told = {(m.line, m.kind, m.old, m.new) for m in FOUND}
    assert (3, "comparison", "x < 3", "(x <= 3)") in told
    assert (3, "comparison", "x == 1", "(x != 1)") in told
    assert (3, "boolean", "not x == 1", "(not not x == 1)") in told
    assert (3, "constant", "3", "4") in told
    assert (5, "arithmetic", "x * 2", "(x // 2)") in told
    assert (6, "return", 'return "ä" + str(y)', "return None") in told
    assert (6, "constant", '"ä"', "'äX'") in told
    assert len({m.id for m in FOUND}) == len(FOUND)


def test_only_lines_that_the_solution_adds_are_changed_and_no_words():
    assert {m.line for m in FOUND}.isdisjoint({2, 9, 10})
    assert not any("Say it" in m.old or m.old == '"int"' for m in FOUND)


def test_what_is_said_to_people_is_no_behaviour():
    assert not any(m.old.startswith(('"not said', '"nor is')) for m in FOUND)


@pytest.mark.parametrize("mutant", FOUND, ids=lambda m: m.id)
def test_every_mutant_is_python_and_differs_at_its_place(mutant):
    text = mutant.files[PATH].data.decode()
    ast.parse(text)
    assert text != SOLVED
    assert mutant.new in text


def test_a_part_of_them_is_the_same_part_each_time_and_stays_when_lines_move():
    drawn = {m.id for m in mutants(source(BASE, SOLVED), 5)}
    assert len(drawn) == 5
    moved = source(BASE, "# a line more\n" + SOLVED)
    assert {m.id for m in mutants(moved, 5)} == drawn


def test_a_touched_function_is_knocked_out_unless_it_does_nothing():
    found = {k.function: k.files[PATH].data.decode() for k in knockouts(source(BASE, SOLVED))}
    assert set(found) == {"f", "spell", "complain"}
    assert 'Say it. 3 < 4"""\n    return None\n\n\ndef untouched' in found["f"]
    assert "def spell(): return None" in found["spell"]


def test_a_file_without_one_hunk_has_the_lines_of_the_base_there():
    whole = source("a\nb\nc\n", "a\nB\nc\nd\n")
    first, last = whole.hunks
    assert whole.without([first])[PATH].data == b"a\nb\nc\nd\n"
    assert whole.without([last])[PATH].data == b"a\nB\nc\n"
    assert whole.without([first, last])[PATH].data == b"a\nb\nc\n"
    assert (first.name, last.name) == ("a.py:2-2", "a.py:4-4")


def test_a_file_that_is_added_or_removed_is_a_hunk_too():
    added = Source({}, by_path([Entry(PATH, "file", b"a\n")]))
    assert added.without(added.hunks) == {}
    removed = Source(by_path([Entry(PATH, "file", b"a\n")]), {})
    assert removed.without(removed.hunks) == removed.base


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=12).map("".join)


@given(before=LINES, after=LINES)
def test_without_every_hunk_all_is_as_it_was(before: str, after: str):
    whole = source(before, after)
    assert whole.without(whole.hunks)[PATH].data.decode() == before
    assert whole.without([])[PATH].data.decode() == after


def test_places_count_bytes_as_the_parser_does():
    text = "x = 'ä'; y = 2\n"
    node = ast.parse(text).body[1]
    assert text[slice(*Places(text).span(node))] == "y = 2"


def test_of_two_edits_one_within_the_other_the_inner_one_is_made():
    assert edited("f(a, b)", [Edit(0, 7, "g()"), Edit(2, 3, "x"), Edit(5, 6, "y")]) == "f(x, y)"
