"""Honest variations: each is another text, can be read, and does the same."""

import types
from collections.abc import Mapping

import pytest

from sandbox.audit.source.trees import Source
from sandbox.audit.variations.kinds import KINDS, Kind, variations
from sandbox.formats.digest import Entry

BASE = '''"""Words."""


def count(text):
    return len(text.split(" "))
'''
SOLVED = '''"""Words."""

from __future__ import annotations

import re
from itertools import chain, islice

LIMIT = 7


def _clean(text: str) -> str:
    """Without what is no word."""
    if not text:
        return ""
    cut = text.strip()
    return re.sub(r"[^a-z ]", "", cut.lower())


def _first(words, most=3):
    found = list(islice(words, most))
    return found


def count(text: str) -> int:
    """How many words there are."""
    if len(text) > 100 and text.isdigit():
        return -12
    words = _clean(text).split()  # on any space
    number = len(words)
    if number > LIMIT:
        said = "many"
    else:
        said = "few" if number else "none"
    return number if said else 0


def both(text: str) -> tuple[int, str]:
    return count(text), text


def told(text: str) -> str:
    number, _ = both(text)
    return f"{number:>3} words, {text!r} {{}}"


class Book:
    def __init__(self, *pages):
        self.pages = pages

    @property
    def words(self):
        return list(chain.from_iterable(_clean(p).split() for p in self.pages))

    def first(self):
        return _first(iter(self.words), most=2)
'''
PATH = "words/counting.py"


def files(**texts: str) -> dict[str, Entry]:
    named = {PATH: texts["counting"], "words/__init__.py": ""}
    return {p: Entry(p, "file", t.encode()) for p, t in named.items()}


SOURCE = Source(files(counting=BASE), files(counting=SOLVED))


def loaded(made: Mapping[str, Entry]) -> types.ModuleType:
    package = types.ModuleType("words_varied")
    package.__path__ = []
    module = types.ModuleType("words_varied.counting")
    module.__package__ = "words_varied"
    helper = made.get("words/_vendored_here.py")
    other = types.ModuleType("words_varied._vendored_here")
    if helper:
        exec(helper.data, vars(other))
    known = {"words_varied": package, "words_varied._vendored_here": other}
    with pytest.MonkeyPatch.context() as patched:
        for name, one in known.items():
            patched.setitem(__import__("sys").modules, name, one)
        exec(compile(made[PATH].data, PATH, "exec", dont_inherit=True), vars(module))
    return module


def behaviour(module: types.ModuleType) -> list[object]:
    book = module.Book("One two!", "three  FOUR")
    texts = ["", "a", "one two  three", "x" * 200, "1" * 101, "a b c d e f g h i"]
    counted = [module.count(t) for t in texts]
    return [counted, [module.told(t) for t in texts], book.words, book.first()]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_every_kind_changes_the_text_and_nothing_else(kind: Kind):
    made = kind.apply(SOURCE)
    assert made is not None, "the sample has something for every kind"
    assert made != SOURCE.solved
    assert behaviour(loaded(made)) == behaviour(loaded(SOURCE.solved))


def test_the_same_variations_are_made_each_time():
    assert list(variations(SOURCE)) == list(variations(SOURCE))
    assert [v.kind for v in variations(SOURCE, ("tabs", "slow"))] == ["tabs", "slow"]


def test_where_there_is_nothing_to_vary_there_is_no_variation():
    text = "a = 1\n"
    found = variations(Source(files(counting="a = 0\n"), files(counting=text)))
    named = {v.kind for v in found}
    assert "renamed-locals" not in named
    assert "vendored-helper" not in named
    assert {"commented", "more-files", "unused-class"} <= named


def test_what_looks_at_its_own_frame_is_left_as_it_is():
    text = "def look():\n    here = 1\n    return sorted(locals())\n"
    found = variations(Source(files(counting=""), files(counting=text)))
    assert not {"renamed-locals", "inner-functions"} & {v.kind for v in found}


def test_a_name_that_another_file_has_is_not_changed():
    solved = files(counting=SOLVED)
    solved["words/more.py"] = Entry("words/more.py", "file", b"from .counting import _clean\n")
    (found,) = variations(Source(files(counting=BASE), solved), ("renamed-helpers",))
    text = found.files[PATH].data
    assert b"def _clean(" in text
    assert b"def _first_renamed(" in text
    test = {"tests/test_a.py": Entry("tests/test_a.py", "file", b"from words import _first\n")}
    assert not list(variations(Source(files(counting=BASE), solved, test), ("renamed-helpers",)))
