import sys
import unittest

import simpleeval
from simpleeval import (
    EvalWithCompoundTypes,
    FeatureNotAvailable,
    InvalidExpression,
    NameNotDefined,
    SimpleEval,
    simple_eval,
)


class TestFrames(unittest.TestCase):
    """No expression gets at a frame, nor at anything called exec."""

    def test_generator_frame(self):
        def numbers():
            yield 1

        self.assertEqual(list(numbers()), [1])
        with self.assertRaises(FeatureNotAvailable):
            simple_eval("numbers.gi_frame", names={"numbers": numbers()})

    def test_async_generator_frame(self):
        async def numbers():
            yield 1

        with self.assertRaises(FeatureNotAvailable):
            simple_eval("numbers.ag_frame", names={"numbers": numbers()})

    def test_coroutine_frame(self):
        async def number():
            return 1

        waiting = number()
        try:
            with self.assertRaises(FeatureNotAvailable):
                simple_eval("waiting.cr_frame", names={"waiting": waiting})
        finally:
            waiting.close()

    def test_traceback_frame(self):
        try:
            raise ValueError("oops")
        except ValueError:
            traceback = sys.exc_info()[2]
        with self.assertRaises(FeatureNotAvailable):
            simple_eval("traceback.tb_frame", names={"traceback": traceback})

    def test_attribute_called_exec(self):
        class Cursor:
            exec = 42

        with self.assertRaises(FeatureNotAvailable):
            simple_eval("cursor.exec", names={"cursor": Cursor()})


class TestNameHandler(unittest.TestCase):
    """Only NameNotDefined says that a handler does not know the name."""

    def test_type_error_reaches_the_caller(self):
        def handler(_node):
            raise TypeError("a bug")

        with self.assertRaises(TypeError):
            SimpleEval(names=handler, functions={"c": 42}).eval("c")

    def test_name_not_defined_leads_to_the_functions(self):
        def handler(node):
            if node.id == "a":
                return 1
            raise NameNotDefined(node.id, "")

        s = SimpleEval(names=handler, functions={"b": lambda: 2, "c": 3})
        self.assertEqual(s.eval("a"), 1)
        self.assertEqual(s.eval("b()"), 2)
        self.assertEqual(s.eval("c"), 3)
        with self.assertRaises(NameNotDefined):
            s.eval("d")

    def test_names_that_are_of_no_use(self):
        s = SimpleEval()
        s.names = 42
        with self.assertRaises(InvalidExpression) as caught:
            s.eval("a")
        self.assertNotIsInstance(caught.exception, NameNotDefined)


class TestDictComprehensions(unittest.TestCase):
    def test_several_clauses(self):
        e = EvalWithCompoundTypes()
        self.assertEqual(
            e.eval("{a + b: a for a in ['x', 'y'] for b in ['1', '2'] if b == '2' or a == 'x'}"),
            {"x1": "x", "x2": "x", "y2": "y"},
        )

    def test_too_many_iterations(self):
        e = EvalWithCompoundTypes()
        most = simpleeval.MAX_COMPREHENSION_LENGTH
        simpleeval.MAX_COMPREHENSION_LENGTH = 10
        try:
            self.assertEqual(e.eval("{a: 1 for a in 'abc'}"), {"a": 1, "b": 1, "c": 1})
            with self.assertRaises(simpleeval.IterableTooLong):
                e.eval("{a: b for a in 'abcd' for b in 'abcd'}")
        finally:
            simpleeval.MAX_COMPREHENSION_LENGTH = most

    def test_plain_evaluator_refuses_comprehensions(self):
        for expression in ("{a: a for a in 'ab'}", "[a for a in 'ab']", "{a for a in 'ab'}"):
            with self.assertRaises(FeatureNotAvailable):
                SimpleEval().eval(expression)
