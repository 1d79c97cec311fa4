"""What a task's own tests say of its solution, and of nothing: what its checks are is found out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from sandbox.adapters.harbor.bench import Bench
from sandbox.adapters.harbor.report import ImportRecord
from sandbox.adapters.harbor.solving import solve
from sandbox.adapters.harbor.tools import GRADE, Plan, grading
from sandbox.adapters.harbor.writing import Judging, write_bundle, write_solution, write_task
from sandbox.formats.taskfile import load_task
from sandbox.grading.judge import judge
from sandbox.grading.verify import verify
from sandbox.model.record import Submission
from sandbox.model.verdict import Evidence, Outcome

LEVELS = tuple(round(n / 100, 2) for n in range(1, 101))
"""Credit for a part is seen to a hundredth."""
_LITERAL = re.compile(
    r"(echo|printf)\s+(-n\s+)?[\"']?(\{[^{}:]*:\s*)?[01](\.0*)?(\\n)?\}?[\"']?\s*>\s*[\"']?\S*reward\.(txt|json)"
)
"""A line of a script that gives all or nothing."""
_ENOUGH = 1.0 - 1e-6
_WORDS = 1000


def interpreter(scripts: Sequence[Path], script: str) -> tuple[str, ...]:
    """What the first line of a test script names; bash, where there is none."""
    for path in scripts:
        if path.name == PurePosixPath(script).name:
            first = path.read_bytes().split(b"\n", 1)[0].decode("utf-8", "replace")
            if first.startswith("#!") and first[2:].strip():
                return tuple(first[2:].split())
    return ("bash",)


def gives_all_or_nothing(texts: Iterable[str]) -> bool:
    """Do these scripts say of every reward that it is 0 or 1? Where they leave it open, no."""
    lines = [line.strip() for text in texts for line in text.splitlines() if "reward." in line]
    lines = [line for line in lines if not line.startswith(("#", "rm "))]
    return bool(lines) and all(_LITERAL.search(line) for line in lines)


def judged(bench: Bench) -> ImportRecord:
    """Writes the task, as it is at last. Raises Refused or a Fault."""
    return _Judge(bench).run()


@dataclass(slots=True)
class _Judge:
    """Solves the task, looks at what its tests say of that and of nothing, and writes it down."""

    bench: Bench

    def run(self) -> ImportRecord:
        place, task = self.bench.place, self.bench.task
        tops = sorted(p.name for p in (place.home / "repos" / task.id).iterdir())
        judging = Judging(
            checks=(f"{GRADE}::reward",), submission=task.submission, writable=tuple(tops)
        )
        write_solution(place.home, task, b"")
        self._write(judging, self._plan({"reward": [1.0]}))
        judging, patch = solve(self.bench, judging)
        oracle = self._evidence(patch)
        floor = self._evidence(b"")
        plan, judging = self._settled(judging, oracle, floor)
        self._write(judging, plan)
        return self._record(patch, judging, plan)

    def _plan(self, keys: Mapping[str, Sequence[float]], expected: Sequence[str] = ()) -> Plan:
        task = self.bench.task
        return Plan(
            script=task.script,
            shell=interpreter(task.scripts, task.script),
            cwd=task.workdir,
            env=task.verifier_env,
            protocol=task.protocol,
            keys=keys,
            expected=expected,
        )

    def _write(self, judging: Judging, plan: Plan) -> None:
        graders = list(grading(plan, self.bench.pinned.image, self.bench.packages))
        write_bundle(self.bench.place.home, self.bench.task, graders)
        write_task(self.bench.place.home, self.bench.task, self.bench.pinned, judging)

    def _evidence(self, patch: bytes) -> Evidence:
        spec = load_task(self.bench.place.home, self.bench.task.id)
        self.bench.place.progress(f"judging {self.bench.task.id}", 0, 1)
        submission = Submission(task=spec.id, patch=patch)
        return verify(spec, submission, self.bench.place.runtime, self.bench.depot().supply(spec))

    def _settled(self, judging: Judging, oracle: Evidence, floor: Evidence) -> tuple[Plan, Judging]:
        """The checks, from what the tests told of the solution."""
        values, tests = told(oracle)
        self._require_solved(oracle, values)
        expected = sorted(name for name, outcome in tests.items() if outcome != Outcome.FAILED)
        if len(expected) < len(tests) or self.bench.task.solution is None:
            expected = []
        nothing, _ = told(floor)
        whole = self._is_whole(values, nothing)
        names = ["reward"] if "reward" in values or not values else sorted(values)
        if len(names) < len(values):
            others = ", ".join(sorted(values.keys() - set(names)))
            self.bench.report.dropped("reward.json", f"beside `reward`, for people only: {others}")
        levels = [1.0] if whole else list(LEVELS)
        keys = dict.fromkeys(names, levels)
        note = "a pass or none" if whole else "to a hundredth, each a check of its own"
        self.bench.report.mapped("reward", f"{', '.join(names)}: {note}")
        if tests:
            note = f"{len(tests)} tests; `reward` is 1 only if all of them passed"
            kind = "CTRF" if self.bench.task.protocol == "harbor" else "pane summary"
            self.bench.report.mapped(kind, note if expected else f"{len(tests)} tests, for people")
        plan = self._plan(keys, expected)
        checks = [
            f"{GRADE}::{key}" if whole else f"{GRADE}::{key}>={level:g}"
            for key in names
            for level in levels
        ]
        return plan, replace(judging, checks=checks)

    def _require_solved(self, oracle: Evidence, values: Mapping[str, float]) -> None:
        if self.bench.task.solution is None:
            return
        low = {
            k: v
            for k, v in values.items()
            if v < _ENOUGH and ("reward" not in values or k == "reward")
        }
        if values and not low:
            return
        wanted = [r.message for name, r in oracle.report.items() if "::wanted " in name]
        for line in wanted:
            self.bench.report.refused("grading-time network", line, str(self.bench.task.scripts[0]))
        report = oracle.report.get(f"{GRADE}::reward")
        why = ", ".join(f"{k} is {v:g}" for k, v in low.items())
        said = why or (report.message if report else oracle.detail or oracle.ran)
        words = oracle.log.strip()[-_WORDS:]
        rows = self.bench.report.rows
        known = [row.note for row in rows if row.field == "solution" and row.fate == "changed"]
        if re.search("Permission denied|PermissionError|not permitted", oracle.log):
            known.append("the tests are nobody's here, and not root's")
        also = "".join(f"; {note}" for note in known)
        note = (
            f"its own solution has no full reward: {said}{also}; its tests' last words: {words!r}"
        )
        self.bench.report.refused("solution", note, str(self.bench.task.folder))
        self.bench.report.require_none_refused()

    def _is_whole(self, *seen: Mapping[str, float]) -> bool:
        """Is a reward of it 0 or 1, as far as can be told?"""
        if self.bench.task.protocol == "terminal-bench":
            return True
        if any(v not in (0.0, 1.0) for values in seen for v in values.values()):
            return False
        texts = [p.read_text("utf-8", "replace") for p in self.bench.task.scripts]
        return gives_all_or_nothing(texts)

    def _record(self, patch: bytes, judging: Judging, plan: Plan) -> ImportRecord:
        rewards = []
        for work in (patch, b""):
            spec = load_task(self.bench.place.home, self.bench.task.id)
            rewards.append(judge(spec.verifier, self._evidence(work)).reward)
        oracle, floor = rewards
        if self.bench.task.solution and oracle < _ENOUGH:
            note = f"its own solution was rewarded once, and then with {oracle:g}"
            self.bench.report.refused("solution", note, str(self.bench.task.folder))
            self.bench.report.require_none_refused()
        if floor >= _ENOUGH and self.bench.task.solution:
            note = "its tests give the full reward for doing nothing"
            self.bench.report.refused("tests", note, str(self.bench.task.folder))
            self.bench.report.require_none_refused()
        if floor > 0:
            note = f"doing nothing is rewarded with {floor:.2f}; metadata.tags says so"
            self.bench.report.changed("floor", note)
            self._write(replace(judging, floor=floor), plan)
        return ImportRecord(
            task=self.bench.task.id,
            format=self.bench.task.format,
            source=self.bench.task.told.source,
            rows=tuple(self.bench.report.rows),
            oracle=round(oracle, 4) if self.bench.task.solution else None,
            floor=round(floor, 4),
        )


def told(evidence: Evidence) -> tuple[dict[str, float], dict[str, Outcome]]:
    """Rewards and tests, as the grader told them beside its checks."""
    values: dict[str, float] = {}
    tests: dict[str, Outcome] = {}
    for name, report in evidence.report.items():
        said = name.removeprefix(f"{GRADE}::")
        if said.startswith("value "):
            values[said.removeprefix("value ")] = float(report.message)
        elif said.startswith("test "):
            tests[said.removeprefix("test ")] = report.outcome
    return values, tests
