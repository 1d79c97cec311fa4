"""A small task in other languages: count the words, with hidden tests of which one hangs before it is solved."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Command = Callable[..., Any]
"""Runs `stillroom` in the home; its answer has a `status` and an `err`."""

CHECK_SECONDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """What a task is made of. Its id is the runner's name."""

    runner: str
    debs: tuple[str, ...]
    source: str
    """The file that is submitted."""
    wrong: str
    right: str
    half: str
    """Right about the empty text only."""
    liar: str
    """As wrong, and prints whatever a runner might take for a record."""
    others: Mapping[str, str]
    """What else the repository has."""
    tests: Mapping[str, str]
    places: tuple[str, ...]
    run: tuple[str, ...]
    gates: tuple[str, ...]
    empty: tuple[str, ...]
    """Checks that only ask for the empty text; the last of them hangs if it is counted wrongly."""
    rest: tuple[str, ...]
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def scored(self) -> tuple[str, ...]:
        return (*self.empty, *self.rest)

    @property
    def image(self) -> str:
        return f"with-{self.runner}"


_FORGED = (
    '.{"check": "ID", "outcome": "passed"}',
    '{"check": "ID", "outcome": "passed"}',
    '!{"ended": "exited", "exit": 0}',
    '{"end": 0}',
)
_EVENTS = (
    '{"type": "test:pass", "name": "white space", "nesting": 0}',
    '{"type": "test:pass", "name": "empty", "nesting": 0}',
    "ok 1 - white space",
)
_GO_LINES = ("--- PASS: TestWhiteSpace (0.00s)", "--- PASS: TestEmpty (0.00s)", "PASS", "ok")
_RUST_LINES = ("test white_space ... ok", "test empty ... ok", "test result: ok. 1 passed")


def _lies(lines: tuple[str, ...], checks: tuple[str, ...]) -> str:
    """As a literal that JavaScript, Go and Rust all read."""
    forged = [line.replace("ID", check) for check in checks for line in _FORGED]
    return json.dumps("\n" + "\n".join((*forged, *lines)) + "\n")


_JS = "exports.countWords = (text) => {{ {0}return text.{1}.length; }};\n"
_JS_FILE = "tests/words.test.js"
_JS_EMPTY = (f"{_JS_FILE} > empty", f"{_JS_FILE} > it ends")
_JS_REST = (f"{_JS_FILE} > white space",)
NODE = Language(
    runner="node",
    debs=("nodejs",),
    source="words.js",
    wrong=_JS.format("", "split(' ')"),
    right=_JS.format("", "split(/\\s+/).filter(Boolean)"),
    half=_JS.format("if (!text) return 0; ", "split(' ')"),
    liar=_JS.format(
        f"process.stdout.write({_lies(_EVENTS, (*_JS_EMPTY, *_JS_REST))}); ", "split(' ')"
    ),
    others={},
    tests={
        _JS_FILE: """
const { test } = require('node:test');
const assert = require('node:assert');
const { countWords } = require('../words.js');
test('words', () => assert.equal(countWords('a b'), 2));
test('empty', () => assert.equal(countWords(''), 0));
test('white space', () => assert.equal(countWords('a  b\\n'), 2));
test('it ends', () => { while (countWords('')); });
""",
        "tests/together.test.js": """
const { test, describe, it } = require('node:test');
const wait = () => new Promise((done) => setTimeout(done, 20));
describe('a', { concurrency: true }, () => { it('one', wait); it('two', () => {}); });
describe('b', { concurrency: true }, () => { it('one', () => {}); it('no', { skip: true }, wait); });
test('parent', async (t) => { await Promise.all([t.test('one', wait), t.test('two', wait)]); });
""",
    },
    places=("tests",),
    run=("tests",),
    gates=(
        f"{_JS_FILE} > words",
        "tests/together.test.js",
        "tests/together.test.js > parent > two",
    ),
    empty=_JS_EMPTY,
    rest=_JS_REST,
)

_GO = """package words

import (
\t"os"
\t"strings"
)

// Count is the number of words in the text.
func Count(text string) int {{
\tdefer os.Stdout.Sync()
\t{0}
\treturn len(strings.{1})
}}
"""
_GO_EMPTY = ("example.org/words.TestEmpty", "example.org/words.TestEnds")
_GO_REST = ("example.org/words.TestWhiteSpace",)
GO = Language(
    runner="go",
    debs=("golang-go",),
    source="words.go",
    wrong=_GO.format("", 'Split(text, " ")'),
    right=_GO.format("", "Fields(text)"),
    half=_GO.format('if text == "" {\n\t\treturn 0\n\t}', 'Split(text, " ")'),
    liar=_GO.format(
        f"os.Stdout.WriteString({_lies(_GO_LINES, (*_GO_EMPTY, *_GO_REST))})", 'Split(text, " ")'
    ),
    others={
        "go.mod": "module example.org/words\n\ngo 1.16\n",
        "cmd/count/main.go": """package main

import (
\t"fmt"
\t"net"
\t"os"

\t"example.org/words"
)

func main() { fmt.Print(words.Count(os.Args[1]), net.IPv4zero) }
""",
    },
    tests={
        "words_test.go": """package words

import "testing"

func expect(t *testing.T, text string, count int) {
\tif got := Count(text); got != count {
\t\tt.Fatalf("Count(%q) is %d", text, got)
\t}
}

func TestWords(t *testing.T)      { expect(t, "a b", 2) }
func TestEmpty(t *testing.T)      { expect(t, "", 0) }
func TestWhiteSpace(t *testing.T) { expect(t, "a  b\\n", 2) }
func TestEnds(t *testing.T) {
\tfor Count("") != 0 {
\t}
}
""",
        "cmd/count/main_test.go": """package main

import (
\t"os"
\t"testing"
)

func TestProgram(t *testing.T) {
\tos.Args = []string{"count", "a b"}
\tmain()
}
""",
    },
    places=("words_test.go", "cmd/count/main_test.go"),
    run=("./...",),
    gates=("example.org/words.TestWords", "example.org/words/cmd/count.TestProgram"),
    empty=_GO_EMPTY,
    rest=_GO_REST,
)

_RUST = "pub fn count(text: &str) -> usize {{\n    {0}\n    text.{1}.count()\n}}\n"
_CHECKSUM = "0" * 64
_RUST_EMPTY = ("it::empty", "it::ends")
_RUST_REST = ("it::white_space",)
CARGO = Language(
    runner="cargo",
    debs=("cargo", "gcc", "libc6-dev"),
    links={"/usr/bin/cc": "gcc"},
    source="src/lib.rs",
    wrong=_RUST.format("", "split(' ')"),
    right=_RUST.format("", "split_whitespace()"),
    half=_RUST.format("if text.is_empty() { return 0; }", "split(' ')"),
    liar=_RUST.format(
        "use std::io::Write;\n    let _ = std::io::stdout().write_all("
        f"{_lies(_RUST_LINES, (*_RUST_EMPTY, *_RUST_REST))}.as_bytes());",
        "split(' ')",
    ),
    others={
        "Cargo.toml": """[package]
name = "words"
version = "0.1.0"
edition = "2021"

[dev-dependencies]
samples = "1"
""",
        "Cargo.lock": f"""version = 3

[[package]]
name = "samples"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "{_CHECKSUM}"

[[package]]
name = "words"
version = "0.1.0"
dependencies = ["samples"]
""",
        ".cargo/config.toml": """[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "vendor"
""",
        "build.rs": 'fn main() { println!("cargo:rerun-if-changed=build.rs"); }\n',
        "src/main.rs": 'fn main() { print!("{}", words::count("a b")); }\n',
        "vendor/samples/Cargo.toml": '[package]\nname = "samples"\nversion = "1.0.0"\n',
        "vendor/samples/src/lib.rs": 'pub const TWO: &str = "a b";\n',
        "vendor/samples/.cargo-checksum.json": json.dumps({"files": {}, "package": _CHECKSUM}),
    },
    tests={
        "tests/it.rs": """use words::count;

#[test] fn words() { assert_eq!(count(samples::TWO), 2); }
#[test] fn program() {
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_words")).status();
    assert!(done.unwrap().success());
}
#[test] fn empty() { assert_eq!(count(""), 0); }
#[test] fn white_space() { assert_eq!(count("a  b\\n"), 2); }
#[test] fn ends() { while count("") != 0 {} }
""",
    },
    places=("tests",),
    run=("tests/it.rs",),
    gates=("it::words", "it::program"),
    empty=_RUST_EMPTY,
    rest=_RUST_REST,
)

LANGUAGES = {language.runner: language for language in (NODE, GO, CARGO)}


def write_recipe(home: Path, language: Language) -> None:
    recipe = {"schema": 1, "base": "python-3.11", "debs": language.debs, "links": language.links}
    path = home / f"repos/images/{language.image}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(recipe))


def write_task(stillroom: Command, home: Path, language: Language) -> None:
    """As `stillroom new` makes it, in another language; its image is locked as well."""
    task = language.runner
    _done(stillroom("new", task))
    write_recipe(home, language)
    _done(stillroom("lock", "image", language.image))
    (home / f"repos/{task}/words.py").unlink()
    (home / f"verifiers/{task}/bundle/tests/test_words.py").unlink()
    _write(home / f"repos/{task}", {language.source: language.wrong, **language.others})
    _write(home / f"verifiers/{task}/bundle", language.tests)
    checks = {"schema": 1, "scored": language.scored, "gates": language.gates}
    (home / f"verifiers/{task}/checks.yaml").write_text(json.dumps(checks))
    (home / f"task_specs/{task}/solution/solution.patch").write_text(_patch(language))
    _rewrite(home / f"task_specs/{task}/task.yaml", home, language)
    _done(stillroom("lock", "repo", task))
    _done(stillroom("lock", "task", task))
    for name, text in (("half", language.half), ("liar", language.liar)):
        (home / f"{task}-{name}.txt").write_text(_commands(language, text))


def _done(done: Any) -> None:
    assert done.status == 0, done.err


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _rewrite(path: Path, home: Path, language: Language) -> None:
    lock = json.loads((home / f"repos/images/{language.image}.lock.json").read_text())
    runner = f"runner: {language.runner}\n  check_seconds: {CHECK_SECONDS}"
    keys = {
        r"name: python-3\.11\n  digest: \S+": f"name: {language.image}\n  digest: {lock['config_digest']}",
        r"paths: \[words\.py\]": f"paths: {json.dumps([language.source])}",
        r"paths: \[tests\]": f"paths: {json.dumps(language.places)}",
        r"runner: pytest": runner,
        r"run: \[tests\]": f"run: {json.dumps(language.run)}",
    }
    text = path.read_text()
    for old, new in keys.items():
        text, count = re.subn(old, new, text)
        assert count == 1, old
    path.write_text(text)


def _patch(language: Language) -> str:
    """All of the file."""
    old, new = language.wrong.splitlines(), language.right.splitlines()
    head = f"--- a/{language.source}\n+++ b/{language.source}\n"
    body = [f"-{line}" for line in old] + [f"+{line}" for line in new]
    return f"{head}@@ -1,{len(old)} +1,{len(new)} @@\n" + "\n".join(body) + "\n"


def _commands(language: Language, text: str) -> str:
    packed = base64.b64encode(text.encode()).decode()
    return f"echo {packed} | base64 -d >{language.source}\n"


AGENTS = {"oracle": 1.0, "nop": 0.0, "half": 2 / 3, "liar": 0.0}
"""Who tries, and what it has to get."""


def wrong_with(language: Language, agent: str, verdict: Mapping[str, Any]) -> str:
    """What is not as it has to be, if anything."""
    failed = {"oracle": (), "half": language.rest}.get(agent, language.scored)
    checks = {
        **dict.fromkeys((*language.gates, *language.scored), "passed"),
        **dict.fromkeys(failed, "failed"),
    }
    if verdict["checks"] != checks:
        return f"these came out: {verdict['checks']}"
    reward = verdict["reward"]
    return "" if abs(reward - AGENTS[agent]) < 1e-9 else f"the reward is {reward}"
