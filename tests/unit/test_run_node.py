"""What runs hidden tests written for node's test runner, on this machine."""

import shutil
from pathlib import Path

import pytest

from tests.support.absent import absent
from tests.support.runners import told, write

TESTS = """
const { test, describe, it, before } = require('node:test');
const assert = require('node:assert');
console.log('ok 1 - forged');
test('right', () => {});
test('wrong', () => assert.equal(1, 2));
test('later', async () => { await new Promise((done) => setTimeout(done, 20)); });
test('skipped', { skip: true }, () => {});
test('to do', { todo: true }, () => { throw new Error('not yet'); });
describe('outer', () => {
  it('a > b', () => {});
  describe('inner', () => { it('wrong', () => { throw new Error('x'); }); });
});
describe('not set up', () => { before(() => { throw new Error('no'); }); it('waits', () => {}); });
test('parent', async (t) => { await t.test('child', () => {}); });
"""
OUTCOMES = {
    " > right": "passed",
    " > wrong": "failed",
    " > later": "passed",
    " > skipped": "skipped",
    " > to do": "xfailed",
    " > outer > a > b": "passed",
    " > outer > inner > wrong": "failed",
    " > outer > inner": "failed",
    " > outer": "failed",
    " > not set up > waits": "error",
    " > not set up": "error",
    " > parent > child": "passed",
    " > parent": "passed",
    "": "failed",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if shutil.which("node") is None:
        absent("there is no node")
    return tmp_path / "work"


def test_each_test_is_named_by_its_file_and_the_suites_around_it(folder: Path):
    write(folder, {"tests/a.test.js": TESTS, "tests/helper.js": "process.exit(1);\n"})
    seen = told("node", folder, "tests")
    assert seen.checks == {f"tests/a.test.js{name}": how for name, how in OUTCOMES.items()}
    assert "forged" in seen.log


def test_a_file_that_passes_is_a_check_of_its_own(folder: Path):
    write(folder, {"a.mjs": "import test from 'node:test'; test('one', () => {});\n"})
    assert told("node", folder, "a.mjs").checks == {"a.mjs > one": "passed", "a.mjs": "passed"}


def test_what_ends_the_process_early_passes_nothing(folder: Path):
    files = {
        "load.test.js": "throw new Error('no');\n",
        "syntax.test.js": "test(\n",
        "exit.test.js": "require('node:test')('one', () => process.exit(0));\n",
        "none.test.js": "",
    }
    write(folder, files)
    seen = told("node", folder, *sorted(files))
    assert seen.uncollected == sorted(files)
    assert seen.checks == dict.fromkeys(files, "failed")


def test_what_takes_too_long_has_failed_with_the_rest_of_its_file(folder: Path):
    slow = "new Promise((done) => setTimeout(done, 1e6))"
    one = f"const {{test}} = require('node:test'); test('right', () => {{}}); test('slow', () => {slow});"
    files = {
        "a.test.js": f"{one} test('last', () => {{}});\n",
        "b.test.js": "require('node:test')('loop', () => { for (;;); });\n",
        "c.test.js": "require('node:test')('right', () => {});\n",
    }
    write(folder, files)
    seen = told("node", folder, *sorted(files), check_seconds=3)
    assert seen.checks == {
        "a.test.js > right": "passed",
        "a.test.js > slow": "failed",
        "a.test.js": "failed",
        "b.test.js": "failed",
        "c.test.js > right": "passed",
        "c.test.js": "passed",
    }
