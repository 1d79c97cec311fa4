"""Literals of hidden tests: which are found, where they are, and what each is there for."""

from hypothesis import given
from hypothesis import strategies as st

from sandbox.audit.canary.literals import Function, read_files, resolve
from sandbox.audit.canary.places import ASSERTED, CLOSE, EXPECTED, GIVEN, Literal
from sandbox.formats.digest import Entry

PATH = "tests/test_a.py"


def functions(source: str) -> dict[str, Function]:
    return read_files([Entry(PATH, "file", source.encode())])[PATH].functions


def ranks(source: str, name: str = "test_a") -> dict[str, int]:
    return {x.text: x.rank for x in functions(source)[name].literals}


def test_what_an_assertion_compares_with_is_expected_and_what_is_passed_is_given():
    found = ranks("def test_a():\n    assert f('x', 1) == 'y'\n")
    assert found == {"'x'": GIVEN, "1": GIVEN, "'y'": EXPECTED}


def test_a_name_that_is_only_compared_with_is_expected_where_it_is_assigned():
    found = ranks("def test_a():\n    want = 'y'\n    assert f('x') == want\n")
    assert found["'y'"] == EXPECTED
    used = ranks("def test_a():\n    want = 'y'\n    assert f(want) == want\n")
    assert used["'y'"] == CLOSE


def test_rows_belong_to_their_place_and_their_columns_say_what_they_are_for():
    source = (
        "import pytest\n"
        "@pytest.mark.parametrize('a,b', [('p', 1), ('q', 2)], ids=['x', 'y'])\n"
        "def test_a(a, b):\n    assert f(a) == b\n"
    )
    function = functions(source)["test_a"]
    found = {(x.text, x.rank, x.group) for x in function.literals}
    assert found == {
        ("'p'", ASSERTED, (0, 0)), ("1", EXPECTED, (0, 0)),
        ("'q'", ASSERTED, (0, 1)), ("2", EXPECTED, (0, 1)),
    }  # fmt: skip
    assert function.shape == (2,)


def test_the_decorator_nearest_to_the_function_is_the_outermost_loop():
    source = (
        "import pytest\n"
        "@pytest.mark.parametrize('a', [1, 2, 3])\n"
        "@pytest.mark.parametrize('b', [4, 5])\n"
        "def test_a(a, b): ...\n"
    )
    assert functions(source)["test_a"].shape == (2, 3)


def test_no_docstring_no_part_of_an_f_string_and_no_other_decorator():
    source = (
        "import pytest\n"
        "@pytest.mark.skipif(False, reason='no')\n"
        "def test_a():\n    'words'\n    assert f(f'{1} of x') == 'y'\n"
    )
    assert ranks(source) == {"'y'": EXPECTED}


def test_of_unittest_the_equal_ones_are_expected_on_the_side_that_is_written():
    source = (
        "class TestA(T):\n"
        "    def test_a(self):\n        self.assertEqual(f('x'), 'y')\n"
        "        self.assertIn('z', f('x'))\n"
    )
    found = ranks(source, "TestA::test_a")
    assert (found["'y'"], found["'z'"], found["'x'"]) == (EXPECTED, CLOSE, GIVEN)


def test_what_a_helper_compares_with_is_expected_where_it_is_called():
    source = (
        "def check(text, want):\n    assert f(text) == want\ndef test_a():\n    check('x', 'y')\n"
    )
    assert ranks(source) == {"'x'": ASSERTED, "'y'": EXPECTED}


def test_a_string_of_several_lines_is_edited_a_line_at_a_time():
    source = "def test_a():\n    assert f() == '''one\n  two\n\n'''\n"
    pieces = functions(source)["test_a"].literals
    assert [(p.line, p.column, p.text, p.kind) for p in pieces] == [
        (2, 21, "one", "piece"),
        (3, 2, "two", "piece"),
    ]


def test_each_string_of_those_that_are_written_together_is_one():
    source = "def test_a():\n    assert f() == ('one'\n        'two')\n"
    assert list(ranks(source)) == ["'one'", "'two'"]


def test_a_table_that_one_test_alone_uses_is_its_rows():
    source = (
        "import pytest\nROWS = [(1, 2), (3, 4)]\n"
        "@pytest.mark.parametrize('a,b', ROWS)\n"
        "def test_a(a, b):\n    assert f(a) == b\n"
    )
    assert {x.group for x in functions(source)["test_a"].literals} == {(0, 0), (0, 1)}


def test_an_inherited_test_is_found_where_it_is_written():
    source = (
        "class Base:\n    def test_a(self):\n        assert f() == 1\n"
        "class TestB(Base):\n    pass\n"
    )
    files = read_files([Entry(PATH, "file", source.encode())])
    found = resolve(files, f"{PATH}::TestB::test_a[x::y]")
    assert found is not None
    assert found.name == "Base::test_a"
    assert resolve(files, f"{PATH}::TestB::test_gone") is None


def test_a_file_that_cannot_be_read_has_no_tests():
    assert not read_files([Entry(PATH, "file", b"def test_a(:\n")])
    assert not read_files([Entry(PATH, "file", b"A = 1\rB = 2\n")])


@given(st.lists(st.text(alphabet="aé\u4e2d\U0001f600 '\"\\\n\t0", max_size=12), max_size=4))
def test_a_literal_is_where_it_says_however_it_is_written(values: list[str]):
    body = "".join(f"    assert f('é') == {value!r}\n" for value in values)
    source = f"def test_a():\n    ...\n{body}"
    lines = source.split("\n")
    found: tuple[Literal, ...] = functions(source)["test_a"].literals
    assert len(found) == 2 * len(values)
    assert all(lines[x.line - 1].startswith(x.text, x.column) for x in found)


def test_the_class_of_an_error_that_is_to_be_raised_is_expected():
    source = (
        "def test_a(self):\n"
        "    with pytest.raises((ValueError, lib.OddError)):\n        f('x')\n"
        "    self.assertRaises(KeyError, f, 'y')\n"
        "    with raises(kind):\n        f(TypeError)\n"
    )
    assert ranks(source) == {
        "'x'": GIVEN, "'y'": CLOSE, "ValueError": EXPECTED, "lib.OddError": EXPECTED,
        "KeyError": EXPECTED,
    }  # fmt: skip
