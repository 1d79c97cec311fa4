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
    right = "const {test} = require('node:test'); test('right', () => {});"
    one = f"{right} test('slow', () => {slow});"
    files = {
        "a.test.js": f"{one} test('last', () => {{}});\n",
        "b.test.js": f"{right} test('loop', () => {{ for (;;); }});\n",
        "c.test.js": "require('node:test')('right', () => {});\n",
    }
    write(folder, files)
    seen = told("node", folder, *sorted(files), check_seconds=3)
    assert seen.checks == {
        "a.test.js > right": "passed",
        "a.test.js > slow": "failed",
        "a.test.js": "failed",
        "b.test.js > right": "passed",
        "b.test.js > loop": "failed",
        "b.test.js": "failed",
        "c.test.js > right": "passed",
        "c.test.js": "passed",
    }


def test_programs_that_a_test_starts_end_as_they_do_without_it(folder: Path):
    starts = """
const { test } = require('node:test');
const assert = require('node:assert');
const { fork } = require('node:child_process');
const { Worker } = require('node:worker_threads');
const said = (stream, end) => new Promise((done) => {
  let text = '';
  stream.stdout.on('data', (data) => { text += data; });
  stream.on(end, (status) => done([text, status]));
});
const helper = __dirname + '/helper.js';
test('fork', async () => assert.deepEqual(await said(fork(helper, { silent: true }), 'close'), ['x', 1]));
test('worker', async () => {
  const worker = new Worker(helper, { stdout: true, stderr: true });
  worker.on('error', () => {});
  assert.deepEqual(await said(worker, 'exit'), ['x', 1]);
});
"""
    helper = "process.stdout.write('x'); throw new Error('no');\n"
    write(folder, {"a.test.js": starts, "helper.js": helper})
    assert told("node", folder, "a.test.js").checks == {
        "a.test.js > fork": "passed",
        "a.test.js > worker": "passed",
        "a.test.js": "passed",
    }


def test_a_file_whose_process_ends_with_0_within_a_test_has_not_passed(folder: Path):
    ends = "const {test} = require('node:test'); test('right', () => {});"
    write(folder, {"a.test.js": f"{ends} test('ends', () => process.exit(0));\n"})
    seen = told("node", folder, "a.test.js")
    assert seen.checks == {"a.test.js > right": "passed", "a.test.js": "failed"}
    assert seen.message("a.test.js") == "it ended within a test"


def test_tests_that_run_at_once_and_those_that_never_begin_are_all_told(folder: Path):
    together = """
const { test, describe, it } = require('node:test');
const wait = () => new Promise((done) => setTimeout(done, 20));
describe('a', { concurrency: true }, () => { it('one', wait); it('two', () => {}); });
describe('b', { concurrency: true }, () => { it('one', () => {}); it('skipped', { skip: true }, wait); });
test('parent', { concurrency: true }, async (t) => { t.test('one', wait); await t.test('two', wait); });
test('to do');
"""
    write(folder, {"a.test.js": together})
    seen = told("node", folder, "a.test.js").checks
    assert seen.pop("a.test.js") == "passed"
    assert len(seen) == 10, seen
