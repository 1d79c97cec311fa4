"""What can be found out about a task: each kind has an id that stays. Pure.

Where OpenEnv's RFC 008 has an id for it, it is that one.
"""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]
_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    severity: Severity
    """An error keeps the task out."""
    means: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    id: str
    severity: Severity
    evidence: str
    hint: str


RULES = (
    Rule(
        "semantic.oracle_max",
        "error",
        "The reference solution does not get the full reward.",
        "look at its run: stillroom show; then mend the solution or the hidden tests",
    ),
    Rule(
        "semantic.floor_gap",
        "error",
        "Doing nothing is worth something: it resolves the task, or passes a scored check.",
        "make a check that passes already a gate",
    ),
    Rule(
        "SR-GATE",
        "error",
        "A gate fails before the solution, so that it cannot show that something was broken.",
        "score it, or leave it out",
    ),
    Rule(
        "semantic.verifier_determinism",
        "error",
        "The same submission is judged in different ways.",
        "stillroom certify says what it hangs on, and can exclude what varies",
    ),
    Rule(
        "SR-ORDER",
        "error",
        "A check ends in another way when the tests run in another order.",
        "make the test bring what it needs, or exclude it",
    ),
    Rule(
        "SR-ALONE",
        "warning",
        "A check does not pass when it is the only test that runs.",
        "make the test bring what it needs",
    ),
    Rule(
        "semantic.replayability",
        "error",
        "The task's certificate does not hold.",
        "certify it again: stillroom certify TASK",
    ),
    Rule(
        "SR-UNCERTIFIED",
        "info",
        "The task has no certificate.",
        "make one: stillroom certify TASK",
    ),
    Rule(
        "SR-HUNK",
        "warning",
        "A part of the reference solution that no check needs.",
        "test it, or take it out of the solution",
    ),
    Rule(
        "SR-KNOCKOUT",
        "warning",
        "A function of the reference solution that can return None without a check failing.",
        "test it",
    ),
    Rule(
        "SR-MUTANTS",
        "error",
        "Fewer than 80 % of the wrong versions of the reference solution fail a check.",
        "test what the survivors change, or say in verifiers/TASK/mutants.yaml why not",
    ),
    Rule(
        "SR-SURVIVOR",
        "info",
        "A wrong version of the reference solution that passes every check.",
        "test the line, or say in verifiers/TASK/mutants.yaml why not",
    ),
    Rule(
        "SR-NARROW",
        "error",
        "The reference solution, written in another way, is turned down.",
        "test what the task asks for, and not how it is written",
    ),
    Rule(
        "SR-UNSAID",
        "info",
        "Hidden tests need a name that neither the repository nor the instruction mentions.",
        "name it in the instruction, or test without it",
    ),
    Rule(
        "SR-CANARY",
        "warning",
        "Fewer than 80 % of the checks have a canary.",
        "canaries.json says why each of the others has none",
    ),
    Rule(
        "SR-UNPROVED",
        "warning",
        "A scored check earns a part of the reward, and has no canary or one that older checks tell apart.",
        "let it weigh 0 in checks.yaml: then it earns nothing, and to fail it costs as much as before",
    ),
    Rule(
        "SR-UNSHOWN",
        "warning",
        "A scored check earns a part of the reward, or full marks, and the plain run has to show no value of it that is hard to guess.",
        "compare with values, or let it weigh 0 in checks.yaml: a guess which text is the test is right now and then",
    ),
    Rule(
        "SR-BITS",
        "info",
        "How much the plain run tells of each expectation; what is one bit can be guessed.",
        "compare values, and not only whether they are true",
    ),
    Rule(
        "semantic.no_solution_leakage",
        "error",
        "The agent's box holds lines of the solution, or names of hidden tests.",
        "take it out of the image or of the repository",
    ),
    Rule(
        "SR-HISTORY",
        "error",
        "The repository in the agent's box holds objects beyond the pinned commit.",
        "pin the repository again: stillroom lock repo",
    ),
    Rule(
        "SR-DIST",
        "error",
        "The agent's box holds another release of the task's own project.",
        "lock the image without it",
    ),
    Rule(
        "SR-EXPLOIT",
        "error",
        "An exploit gets more than doing nothing does.",
        "stillroom check TASK --exploit NAME shows it alone",
    ),
    Rule(
        "SR-ATTACKED",
        "info",
        "How many exploits were tried, and what came of them.",
        "",
    ),
    Rule(
        "SR-UNTRIED",
        "warning",
        "Most exploits need what the task lacks, a module in Python for instance: little is known.",
        "write exploits for its language: CONTRIBUTING.md says how",
    ),
    Rule(
        "SR-COST",
        "info",
        "What a verdict costs.",
        "",
    ),
    Rule(
        "SR-SLOW",
        "warning",
        "The checks take more than half of the time they have: on a busy machine, all of it.",
        "give them more: verifier.seconds",
    ),
    Rule(
        "SR-VOID",
        "error",
        "Something of ours failed: this was not found out.",
        "stillroom doctor says what the machine lacks",
    ),
)
BY_ID = {r.id: r for r in RULES}


def finding(name: str, evidence: str, hint: str = "") -> Finding:
    """hint: instead of the rule's own."""
    rule = BY_ID[name]
    short = evidence if len(evidence) <= _CHARACTERS else evidence[: _CHARACTERS - 1] + "…"
    return Finding(id=name, severity=rule.severity, evidence=short, hint=hint or rule.hint)
