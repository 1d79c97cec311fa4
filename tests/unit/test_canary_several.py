"""Several canaries of one unit; and what the public form of a test says already."""

from sandbox.audit.canary.admit import Admission
from sandbox.audit.canary.literals import read_files
from sandbox.audit.canary.places import Literal
from sandbox.audit.canary.propose import vocabulary
from sandbox.audit.canary.public import Form, of_several, public_forms
from sandbox.audit.canary.quest import candidates
from sandbox.audit.canary.search import Search
from sandbox.audit.canary.several import MORE, several
from sandbox.formats.digest import Entry
from sandbox.grading.variants import edited
from sandbox.model.layers import Canary
from tests.unit.test_canary_admit import RIGHT, WRONG, MiniBench
from tests.unit.test_canary_search import search

WORDS = "".join(f"def test_{w}():\n    assert f('{w}') == '{w.upper()}'\n" for w in
                ("ant", "bee", "cat", "dog", "elk", "fox", "gnu"))  # fmt: skip


def found(source: str, *scored: str) -> tuple[Search, dict[str, tuple[Canary, ...]]]:
    bench = MiniBench(source, {RIGHT: str.upper, WRONG: str.lower})
    paid = [f"a.py::{name}" for name in scored]
    made = search(bench.suites[RIGHT], scored=paid)
    first = Admission(
        search=made, bench=bench, solution=RIGHT, wrong={"wrong": WRONG}, note=lambda *_: None
    )
    first.admit()
    return made, several(first, paid)


def test_what_is_scored_gets_several_canaries_each_of_which_fails():
    made, more = found(WORDS, "test_ant", "test_bee")
    assert {name: len(canaries) for name, canaries in more.items()} == {
        "a.py::test_ant": MORE,
        "a.py::test_bee": MORE,
    }
    bench = MiniBench(WORDS, {RIGHT: str.upper})
    for name, canaries in more.items():
        texts = {made.quests[name].kept()[0].new, *(c.edits[0].new for c in canaries)}
        assert len(texts) == 1 + MORE
        for canary in canaries:
            seen = bench.run(canary.edits, RIGHT)
            assert [c for c, r in seen.report.items() if r.outcome != "passed"] == [name]


def test_where_the_first_changes_only_what_is_expected_so_do_the_others():
    _, more = found(WORDS, "test_cat")
    assert {c.edits[0].old for canaries in more.values() for c in canaries} == {"'CAT'"}


def test_a_row_without_another_canary_keeps_its_first_one():
    rows = "import re\n@pytest.mark.parametrize('a,b', [('p', 'P'), ('12', 12 == 12)])\n"
    source = f"{rows}def test_a(a, b):\n    assert f(a) == b or b is True\n" + WORDS
    made, more = found(source, "test_a[p-P]", "test_a[12-True]")
    (canaries,) = more.values()
    assert canaries
    for canary in canaries:
        assert canary.checks.keys() == made.quests["a.py::test_a"].covered.keys()
        assert {e.line for e in canary.edits} == {
            e.line for e in made.quests["a.py::test_a"].kept()
        }


def test_what_nobody_is_paid_for_has_one():
    _, more = found(WORDS)
    assert more == {}


def the_literals(source: str, name: str) -> list[Literal]:
    (file,) = read_files([Entry("t.py", "file", source.encode())]).values()
    return list(file.functions[name].literals)


def test_a_line_that_is_public_is_no_place_for_a_canary():
    old = "def test_a():\n    assert f('red') == 'RED'\n"
    new = old + "    assert f('blue') == 'BLUE'\n"
    forms = public_forms([Entry("t.py", "file", old.encode())], ["t.py"])
    literals = the_literals(new, "test_a")
    known = vocabulary(literals)
    usual = {e.old for c in candidates(literals, known)[()] for e in c.edits}
    assert "'RED'" in usual
    queue = candidates(literals, known, public=forms["t.py::test_a"])[()]
    assert {e.old for c in queue for e in c.edits} == {"'blue'", "'BLUE'"}


def test_nor_does_one_bring_back_what_stood_there():
    old, new = (f"def test_a():\n    assert f('x') == '{w}'\n" for w in ("GREEN", "BLACK"))
    form = public_forms([Entry("t.py", "file", old.encode())], ["t.py"])["t.py::test_a"]
    literals = the_literals(new, "test_a")
    known = vocabulary([*literals, *the_literals(old, "test_a")])
    with_it = {e.new for c in candidates(literals, known)[()] for e in c.edits}
    without = {e.new for c in candidates(literals, known, public=form)[()] for e in c.edits}
    assert "'GREEN'" in with_it
    assert without == with_it - {"'GREEN'"}
    tests = [Entry("t.py", "file", new.encode())]
    for candidate in candidates(literals, known, public=form)[()]:
        (changed,) = edited(tests, candidate.edits)
        assert changed.data != old.encode()


def test_a_table_and_a_data_file_have_public_forms_too():
    tree = [
        Entry("t.py", "file", b"ROWS = ['yellow']\n"),
        Entry("data/a.json", "file", b'{"k": "v"}\n'),
        Entry("src/a.py", "file", b"def f():\n    return 'secret'\n"),
    ]
    forms = public_forms(tree, ["t.py", "data/a.json"])
    assert forms.keys() == {"t.py::ROWS", "data/a.json"}
    both = of_several(forms, ["t.py::ROWS", "data/a.json", "nowhere"])
    assert both == Form(
        texts=frozenset({"'yellow'"}),
        lines=frozenset({"ROWS = ['yellow']", '{"k": "v"}', ""}),
    )
