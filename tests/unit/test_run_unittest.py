"""What runs hidden tests written with unittest, on this machine."""

import textwrap
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.runners import Told, told, write

ALL = """
import os, sys, time, unittest

def setUpModule(): print("printed")

class Ends(unittest.TestCase):
    def test_right(self): ...
    def test_wrong(self): self.assertEqual(1, 2)
    def test_raises(self): raise ValueError("oh")
    def test_leaves(self): sys.exit(0)
    def test_parts(self):
        for n in range(3):
            with self.subTest(n=n): self.assertNotEqual(n, 1)
    def test_all_parts(self):
        for n in range(3):
            with self.subTest(n=n): self.assertLess(n, 3)
    def test_some_parts(self):
        with self.subTest(): self.skipTest("not today")
    @unittest.skip("why")
    def test_skipped(self): ...
    @unittest.expectedFailure
    def test_fails_as_expected(self): self.fail()
    @unittest.expectedFailure
    def test_passes_unexpectedly(self): ...

class Harsh(unittest.TestCase):
    def test_a_crash(self): os._exit(0)
    def test_b_signal(self): os.kill(os.getpid(), 11)
    def test_c_interrupt(self): raise KeyboardInterrupt
    def test_d_right(self): ...

class NotSetUp(unittest.TestCase):
    def setUp(self): self.assertTrue(0)
    def test_it(self): ...

class NotTornDown(unittest.TestCase):
    def tearDown(self): raise OSError
    def test_it(self): ...

class ClassNotSetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("no")
    def test_it(self): ...

class ClassSkipped(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no")
    def test_it(self): ...

class ClassNotTornDown(unittest.TestCase):
    @classmethod
    def tearDownClass(cls): raise OSError("no")
    def test_it(self): ...
"""
OUTCOMES = {
    "Ends.test_right": "passed",
    "Ends.test_wrong": "failed",
    "Ends.test_raises": "failed",
    "Ends.test_leaves": "failed",
    "Ends.test_parts": "failed",
    "Ends.test_all_parts": "passed",
    "Ends.test_some_parts": "skipped",
    "Ends.test_skipped": "skipped",
    "Ends.test_fails_as_expected": "xfailed",
    "Ends.test_passes_unexpectedly": "xpassed",
    "Harsh.test_a_crash": "failed",
    "Harsh.test_b_signal": "failed",
    "Harsh.test_c_interrupt": "error",
    "Harsh.test_d_right": "passed",
    "NotSetUp.test_it": "error",
    "NotTornDown.test_it": "error",
    "ClassNotSetUp.test_it": "error",
    "ClassSkipped.test_it": "skipped",
    "ClassNotTornDown.test_it": "error",
}


def run(folder: Path, text: str, **plan: object) -> Told:
    write(folder, {"tests/test_a.py": textwrap.dedent(text)})
    return told("unittest", folder, "tests", **plan)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "work"


def test_each_test_ends_as_it_does_and_the_others_go_on(folder: Path):
    seen = run(folder, ALL)
    assert seen.checks == {f"tests.test_a.{name}": how for name, how in OUTCOMES.items()}
    assert seen.message("tests.test_a.Ends.test_wrong") == "AssertionError: 1 != 2"
    assert seen.message("tests.test_a.Harsh.test_a_crash") == "it ended with exit code 0"
    assert seen.message("tests.test_a.ClassNotSetUp.test_it") == "setUpClass: OSError: no"
    assert "printed" in seen.log


def test_a_test_that_takes_too_long_has_failed_and_the_others_go_on(folder: Path):
    text = """
        import unittest
        class A(unittest.TestCase):
            def test_1(self): ...
            def test_2(self):
                while True: pass
            def test_3(self): ...
    """
    seen = run(folder, text, check_seconds=1)
    assert list(seen.checks.values()) == ["passed", "failed", "passed"]
    assert "was stopped after" in seen.message("tests.test_a.A.test_2")


def test_a_module_that_cannot_be_imported_is_named_once_and_takes_no_other_with_it(folder: Path):
    write(folder, {"tests/test_b.py": "import nowhere\n", "tests/test_c.py": "exit(0)\n"})
    text = """
        import os, unittest
        class A(unittest.TestCase):
            def test_1(self): os._exit(1)
            def test_2(self): ...
    """
    seen = run(folder, text)
    assert seen.uncollected == ["tests.test_b", "tests.test_c"]
    assert list(seen.checks.values()) == ["failed", "passed"]


def test_an_end_while_tests_are_loaded_or_torn_down_is_no_pass(folder: Path):
    text = """
        import os, unittest
        class A(unittest.TestCase):
            @classmethod
            def tearDownClass(cls): os._exit(0)
            def test_1(self): ...
    """
    assert run(folder, text).checks == {"tests.test_a.A.test_1": "error"}
    seen = run(folder, "import os; os._exit(0)")
    assert (seen.checks, seen.uncollected) == ({}, ["the tests"])


def test_a_seed_gives_an_order_of_its_own_in_which_classes_stay_together(folder: Path):
    text = "import unittest\n"
    for name in "ABCD":
        tests = "\n".join(f"    def test_{n}(self): ..." for n in range(4))
        text += f"class {name}(unittest.TestCase):\n{tests}\n"
    usual, drawn = run(folder, text).order, run(folder, text, order=7).order
    assert drawn != usual == sorted(drawn)
    assert run(folder, text, order=7).order == drawn
    assert len(dict.fromkeys(name.split(".")[2] for name in drawn)) == 4
    classes = [name.split(".")[2] for name in drawn]
    assert sum(a != b for a, b in pairwise(classes)) == 3


def test_the_code_under_test_comes_last_and_may_have_names_of_ours(folder: Path):
    write(
        folder, {"random.py": "1/0\n", "common.py": "ours = 0\n", "src/programs.py": "more = 1\n"}
    )
    text = """
        import random, common, programs, unittest
        class A(unittest.TestCase):
            def test_1(self): self.assertEqual((common.ours, programs.more), (0, 1))
    """
    seen = run(folder, text, environment={"PYTHONPATH": str(folder / "src")})
    assert list(seen.checks.values()) == ["passed"], seen.log


def test_a_pattern_names_the_files(folder: Path):
    text = "import unittest\nclass A(unittest.TestCase):\n    def test_1(self): ...\n"
    write(folder, {"tests/unit/a_check.py": text})
    seen = run(folder, "", options={"pattern": "*_check.py"})
    assert seen.order == ["tests.unit.a_check.A.test_1"]
