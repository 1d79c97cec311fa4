"""The contract of a runtime, as checks that anybody can run against their own.

    stillroom doctor --conformance my.module:Runtime

Each check is a function of a `Bench`; its name is a sentence about a runtime that keeps the
contract, its docstring says which part of `sandbox.runtime.base` it holds it to, and it raises an
AssertionError when the sentence is not true. `all_checks` has them in order, `run` runs them.
"""

from sandbox.audit.conformance.bench import Bench, Unseen
from sandbox.audit.conformance.registry import Check, lacks
from sandbox.audit.conformance.run import Outcome, all_checks, run, workbench

__all__ = ["Bench", "Check", "Outcome", "Unseen", "all_checks", "lacks", "run", "workbench"]
