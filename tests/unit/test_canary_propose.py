"""What may stand in a literal's place: of the same form, in words that the suite has."""

import ast
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.audit.canary.places import Kind, Literal
from sandbox.audit.canary.propose import proposals, vocabulary


def literal(text: str, kind: Kind = "string", line: int = 1) -> Literal:
    return Literal(path="test_a.py", line=line, column=4, text=text, kind=kind)


SUITE = [
    *map(literal, ("'red house'", "'blue tree'", '"Green"', "b'raw'", "'a-b'", "'x_y'", "r'\\d+'")),
    *(literal(n, "number") for n in ("12", "47", "3", "1.5", "0x1f")),
    *(literal(c, "constant") for c in ("True", "False", "None")),
]
KNOWN = vocabulary(SUITE)
WORDS = {w for x in SUITE for w in re.findall("[A-Za-z]+", x.text)}


@pytest.mark.parametrize("given", SUITE, ids=lambda x: x.text)
def test_what_is_proposed_has_the_same_form_and_says_something_else(given: Literal):
    for new in proposals(given, KNOWN):
        before, after = ast.literal_eval(given.text), ast.literal_eval(new)
        assert after != before
        assert type(after) is type(before) or given.kind == "constant"
        prefix = re.compile("[a-z]*['\"]?" if given.kind == "string" else "")
        assert prefix.match(new)[0] == prefix.match(given.text)[0]  # type: ignore[index]


def test_no_word_is_new():
    for there in SUITE:
        if there.kind == "string":
            found = {w for new in proposals(there, KNOWN) for w in re.findall("[A-Za-z]+", new)}
            assert found <= WORDS


def test_a_whole_number_becomes_one_as_long_that_is_near_or_is_elsewhere_in_the_suite():
    assert {*proposals(literal("12", "number"), KNOWN)} == {*map(str, range(10, 22))} - {"12"} | {
        "47"
    }
    assert {*proposals(literal("0", "number"), KNOWN)} == {*"123456789"}


@pytest.mark.parametrize("divisor", range(2, 10))
def test_what_is_left_of_a_sum_does_not_tell_a_test_from_its_canaries(divisor: int):
    """Steps of one are odd all of them: who says "odd" is right in one try of two."""

    def told(line: int) -> bool:
        numbers = [replace(literal("3", "number", line), column=c) for c in range(0, 24, 4)]
        steps = [int(proposals(n, KNOWN)[0]) - 3 for n in numbers]
        return all(step % divisor for step in steps)

    right = sum(map(told, range(400))) / 400 / divisor
    assert right < 0.15


def test_true_and_false_change_places_and_none_is_neither():
    assert proposals(literal("True", "constant"), KNOWN) == ["False"]
    assert proposals(literal("None", "constant"), KNOWN) == ["False", "True"]
    assert proposals(literal("None", "constant"), vocabulary([])) == []


def test_escapes_and_the_places_of_a_format_stay():
    for new in proposals(literal(r"'red\n{name} %(tree)s'"), KNOWN):
        if "{name}" not in new:
            assert new in {x.text for x in SUITE}
        else:
            assert r"\n{name} %(tree)s" in new


def test_the_same_literal_gets_the_same_proposals_and_another_line_may_get_others():
    assert proposals(SUITE[0], KNOWN) == proposals(SUITE[0], vocabulary(reversed(SUITE)))
    lines = [literal("'red house'", line=n) for n in range(30)]
    assert len({tuple(proposals(x, KNOWN)) for x in lines}) > 1


@given(st.text(alphabet="ab1 -\\n'\"{}%(é\n\x00", max_size=20), st.sampled_from(["", "b", "r"]))
def test_whatever_is_written_no_line_is_broken_and_no_quote_lost(text: str, prefix: str):
    plain = text.encode("ascii", "ignore").decode() if prefix == "b" else text
    written = repr(plain.encode()) if prefix == "b" else repr(plain)
    for new in proposals(literal(written), KNOWN):
        assert "\n" not in new
        assert isinstance(ast.literal_eval(new), str | bytes)


def test_an_error_is_replaced_by_one_of_the_file_or_by_one_of_pythons():
    known = vocabulary(literal(n, "name") for n in ("OddError", "EvenError", "Style", "KeyError"))
    found = proposals(literal("OddError", "name"), known)
    assert {"EvenError", "KeyError"} == set(found[:2])
    assert "Style" not in found
    assert len(found) == 6
    assert proposals(literal("Style", "name"), known) == []
