"""Each runner's output is read as the published graders read it, and what they pass over is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.formats.logs.sighting import (
    RANK,
    Edition,
    Setting,
    Sighting,
    Status,
    UnreadableLog,
    last,
    worst,
)
from sandbox.formats.logs.table import PARSERS, parser_name

FIFTH, FIRST = Setting(), Setting(edition=Edition.V1)
PASSED, FAILED, SKIPPED, ERROR = Status.PASSED, Status.FAILED, Status.SKIPPED, Status.ERROR


def counted(name: str, text: str, setting: Setting = FIFTH) -> dict[str, Status]:
    return {test: one.status for test, one in last(PARSERS[name](text, setting)).items()}


def every(name: str, text: str, setting: Setting = FIFTH) -> dict[str, Status]:
    return worst(PARSERS[name](text, setting))


@pytest.mark.parametrize(
    ("parser", "text", "found"),
    [
        ("pytest", "PASSED a.py::t[x y]\nFAILED a.py::u - boom - bang", {"a.py::t[x": PASSED, "a.py::u": FAILED}),
        ("pytest", "SKIPPED [2] a.py:3: why\nERROR a.py - no", {"a.py": ERROR}),
        ("pytest_options", "PASSED a.py::t[/tmp/p-1/x]", {"a.py::t[/x]": PASSED}),
        ("pytest_options", "PASSED a.py::t[//h/x]\nPASSED a.py::t[/a/*]", {"a.py::t[//h/x]": PASSED, "a.py::t[/a/*]": PASSED}),
        ("pytest_v2", "\x1b[32mPASSED\x1b[0m a.py::t[x y]\na.py::u FAILED", {"a.py::t[x y]": PASSED, "a.py::u": FAILED}),
        ("seaborn", "a.py::t PASSED [ 1%]\nFAILED a.py::u - x", {"a.py::t": PASSED, "a.py::u": FAILED}),
        ("matplotlib", "PASSED a.py::t[MouseButton.LEFT]", {"a.py::t[1]": PASSED}),
        ("django", "t (m.C) ... ok\nu (m.C) ... noise\nok\nFAIL: v (m.C)", {"t (m.C)": PASSED, "u (m.C)": PASSED, "v": FAILED}),
        ("django", "t (m.C) ... Testing against Django installed in 'x'\n(0 silenced).\nok", {"t (m.C)": PASSED}),
        ("sympy", "__ a/test_x.py:test_q __\ntest_a ok\ntest_b F\ntest_c E", {"a/test_x.py:test_q": FAILED, "test_a": PASSED, "test_b": FAILED, "test_c": ERROR}),
        ("jest", "  ✓ adds (3 ms)\n  ✕ takes\n  ○ skipped waits", {"adds": PASSED, "takes": FAILED, "skipped waits": SKIPPED}),
        ("jest_json", "[PASSED] a > b\n[FAILED] c", {"a > b": PASSED, "c": FAILED}),
        ("vitest", "✓ a > b 3ms\n\N{MULTIPLICATION SIGN} c\n↓ d [skipped]", {"a > b": PASSED, "c": FAILED, "d": SKIPPED}),
        ("carbon", "PASS a.js (1.2 s)\nFAIL b.js", {"a.js": PASSED, "b.js": FAILED}),
        ("mocha", "  suite\n    ✓ works (5ms)\n    1) fails\n    - waits\n  1 passing", {"suite works": PASSED, "suite fails": FAILED, "suite waits": SKIPPED}),
        ("eslint", "  1) Rule\n    sub:\n     AssertionError: x", {"Rule sub:": FAILED}),
        ("p5js", "  1) a\n       b:\n", {"a:b": FAILED}),
        ("karma", "Starting browser\n  suite\n    ✔ a\n    ✖ b\nSUMMARY:\n    ✖ c", {"suite > a": PASSED, "suite > b": FAILED}),
        ("chart_js", "Chrome 1.2 (Linux) a b FAILED", {"a b ": FAILED}),
        ("openlayers", "case x: mismatch", {"x": FAILED}),
        ("tap", "ok 1 a\nnot ok 2 b", {"a": PASSED, "b": FAILED}),
        ("gotest", "--- PASS: TestA (0.00s)\n    --- FAIL: TestA/b (0.01s)\n--- SKIP: C (0s)", {"TestA": PASSED, "TestA/b": FAILED, "C": SKIPPED}),
        ("cargo", "test a::b ... ok\ntest c ... FAILED", {"a::b": PASSED, "c": FAILED}),
        ("maven", "+ mvn -Dtest=A#b\n+ mvn -Dtest=C\n[INFO] BUILD SUCCESS\n[INFO] BUILD FAILURE", {"A#b": PASSED, "C": FAILED}),
        ("ant", "[junit] [PASS] a\n[junit] [ERR] b", {"a": PASSED, "b": FAILED}),
        ("gradle_custom", "a.B > c PASSED\na.B > d\nwarning\nFAILED", {"a.B > c": PASSED, "a.B > d": FAILED}),
        ("phpunit", "Foo (Tests)\n ✔ does\n ✘ fails\n ↩ waits", {"Foo > does": PASSED, "Foo > fails": FAILED, "Foo > waits": SKIPPED}),
        ("minitest", "A#test_b. = 0.01 s = .\nA#test_c. = 0.02 s = F", {"A#test_b": PASSED, "A#test_c": FAILED}),
        ("ruby_unit", "test: a: .\ntest: b: F", {"a": PASSED, "b": FAILED}),
        ("rspec_transformed_json", "a - passed\nb - failed", {"a": PASSED, "b": FAILED}),
        ("cucumber", "features/a ....\nfeatures/b ..F", {"features/a": PASSED, "features/b": FAILED}),
        ("googletest", "[       OK ] A.b (3 ms)\n[  FAILED  ] A.c (3 ms)", {"A.b": PASSED, "A.c": FAILED}),
        ("redis", "[ok]: a (3 ms)\n[err]: b in tests/x.tcl\n[skip]: c", {"a": PASSED, "b": FAILED, "c": SKIPPED}),
        ("jq", "PASS: a\nFAIL: b", {"a": PASSED, "b": FAILED}),
        ("micropython_test", "pass  a.py\nFAIL  b.py\nskip  c.py", {"a.py": PASSED, "b.py": FAILED, "c.py": SKIPPED}),
        ("doctest", '<doctest><TestCase name="a"><SubCase name="b"><Expression success="true"/></SubCase></TestCase></doctest>', {"a > b": PASSED}),
    ],
)  # fmt: skip
def test_a_runner_s_output_is_read(parser: str, text: str, found: dict[str, Status]):
    assert counted(parser, text) == found


@pytest.mark.parametrize(
    ("parser", "text", "test", "status"),
    [
        ("pytest", "XPASS a.py::t", "a.py::t", Status.XPASS),
        ("pytest", "a.py::t FAILED [ 50%]", "a.py::t", FAILED),
        ("pytest", "[gw12] [  3%] FAILED a.py::t[x y] ", "a.py::t[x y]", FAILED),
        ("seaborn", "[gw0] [100%] XFAIL a.py::t", "a.py::t", Status.XFAIL),
        ("pytest", "SUBFAIL a.py::t - assert 1", "a.py::t", FAILED),
        ("pytest_v2", "[row] (i=1) SUBFAIL a.py::t - x", "a.py::t", FAILED),
        ("pytest_options", "SUBFAILED[row] (i=1) a.py::t - x", "a.py::t", FAILED),
        ("seaborn", "ERROR a.py::t - x", "a.py::t", ERROR),
        ("django", "t (m.C) ... expected failure", "t (m.C)", Status.XFAIL),
        ("django", "FAIL: t (m.C)", "t (m.C)", FAILED),
        ("sympy", "test_a ok    [OK]", "test_a", PASSED),
        ("tap", "ok 1 a # SKIP no", "a # SKIP no", SKIPPED),
        ("cargo", "test a ... ignored, slow", "a", SKIPPED),
        ("cargo", "test a ... bench: 3", "a", Status.UNKNOWN),
        ("gotest", '{"Action":"fail","Test":"TestA"}', "TestA", FAILED),
        ("maven", "Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 1 s - in a.B", "a.B", FAILED),
        ("ant", "[junit] [SKIP] a", "a", SKIPPED),
        ("gradle_custom", "a.B > c SKIPPED", "a.B > c", SKIPPED),
        ("phpunit", " ☢ risky", "None > risky", Status.UNKNOWN),
        ("minitest", "A#b. = 0 s = S", "A#b", SKIPPED),
        ("rspec_transformed_json", "a - pending", "a", SKIPPED),
        ("googletest", "[  SKIPPED ] A.b (0 ms)", "A.b", SKIPPED),
        ("jq", "XFAIL: a", "a", Status.XFAIL),
    ],
)  # fmt: skip
def test_what_published_graders_pass_over_is_kept_beside(
    parser: str, text: str, test: str, status: Status
):
    assert every(parser, text)[test] is status


def test_a_word_that_is_no_status_is_kept_as_it_stands():
    assert list(PARSERS["pytest"]("ERROR: a.py::t", FIFTH)) == [
        Sighting("a.py::t", Status.UNKNOWN, "ERROR:")
    ]


def test_editions_read_the_same_line_differently():
    line = "PASSED a.py::t[x y]"
    assert counted("sphinx", line, Setting(edition=Edition.V4)) == {"a.py::t[x": PASSED}
    assert counted("sphinx", line) == {"a.py::t[x y]": PASSED}
    assert counted("pytest", "XFAIL a.py::t", FIRST) == {}
    assert every("pytest", "XFAIL a.py::t", FIRST) == {"a.py::t": Status.XFAIL}
    assert counted("django", "t (m.C) ...  OK", FIRST) == {}
    assert counted("matplotlib", "PASSED t[MouseButton.LEFT]", FIRST) == {
        "t[MouseButton.LEFT]": PASSED
    }


def test_the_last_word_is_published_and_the_worst_is_ours():
    text = "FAILED a.py::t - x\nPASSED a.py::t"
    assert counted("pytest", text) == {"a.py::t": PASSED}
    assert every("pytest", text) == {"a.py::t": FAILED}


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        ("prismjs", "x ./node_modules/.bin/mocha tests/run.js --reporter json\n{"),
        ("doctest", "<doctest><TestCase>"),
        ("jekyll", "x"),
        ("immutable_js", "x"),
    ],
)
def test_a_log_that_breaks_its_form_has_no_answer(parser: str, text: str):
    with pytest.raises(UnreadableLog):
        counted(parser, text)


def test_who_prints_what_is_known_by_name_by_repository_and_by_language():
    assert parser_name(named="parse_log_pytest_v2", repository="django/django") == "pytest_v2"
    assert parser_name(repository="Django/django") == "django"
    assert parser_name(repository="nobody/knows", language="Go") == "gotest"
    assert parser_name(repository="nobody/knows") is None
    assert parser_name(named="parse_log_new", repository="django/django") is None


_PIECES = st.sampled_from(
    [
        *("PASSED", "FAILED", "ERROR", "XFAIL", "ok", "not ok 1", " ... ", "test", "::", "[", "]"),
        *("\n", "\n\n", " ", "\t", "✓", "✖", "(3 ms)", ")", "1)", "Error", "Chrome 1 (", "x"),
        *("--- PASS: ", "{", "}", "<a>", "</a>", "Starting browser", " xvfb-run ", ":", ".", "="),
        *("running 1 test files", " ./node_modules/.bin/jest ", "Running: a)\n\n\n  b\n", "\0"),
    ]
)


@given(
    st.lists(_PIECES, max_size=30).map("".join),
    st.sampled_from(sorted(PARSERS)),
    st.sampled_from(list(Edition)),
)
def test_no_log_breaks_a_parser_and_ours_is_never_the_better_reading(
    text: str, parser: str, edition: Edition
):
    setting = Setting(edition=edition, instance="jekyll__jekyll-9141", version="9.5")
    try:
        found = list(PARSERS[parser](text, setting))
    except UnreadableLog:
        return
    ours = worst(found)
    for test, one in last(found).items():
        assert RANK[ours[test]] >= RANK[one.status]
