"""Three graders as others have them, each in boxes of ours: exit code, JUnit report, SWE-bench's own."""

import json
import subprocess
import sys
import tarfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree as ET

from sandbox.errors import Fault
from sandbox.formats.digest import Entry
from sandbox.grading.judge import judge
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import CheckReport, Evidence, Outcome, Ran
from sandbox.rollout.run import World, agent_box, standing
from sandbox.runtime.base import Box
from sandbox.runtime.supplies import Supplies
from sandbox.runtime.tarball import pack

SWEBENCH = "swebench==5.0.2"
_BESIDE = ("unidiff==1.0.1", "requests==2.32.5")
"""All that its grading imports; the rest of what it depends on is for other parts of it."""
_SECONDS, _OUTPUT = 120.0, 64 << 20
_APPLY = (
    "git apply --verbose",
    "git apply --verbose --3way",
    "git apply --verbose --reject",
    "patch --batch --forward --fuzz=5 -p1 -i",
)
"""GIT_APPLY_CMDS of its harness/run_evaluation.py."""
_GRADE = """\
import json, sys, tempfile, types
import swebench
package = types.ModuleType("swebench.harness")  # its __init__ loads Docker, Modal and data sets
package.__path__ = [swebench.__path__[0] + "/harness"]
sys.modules["swebench.harness"] = package
from swebench.harness.grading import get_eval_report
from swebench.types import TestSpec
given = json.load(sys.stdin)
with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
    log.write(given["log"])
    log.flush()
    spec = TestSpec(instance_id="x", image="", eval_script_list=[], repo="", version="",
                    FAIL_TO_PASS=given["fails"], PASS_TO_PASS=given["passes"],
                    log_parser="parse_log_pytest", eval_type="pass_and_fail")
    told = get_eval_report(spec, {"instance_id": "x", "model_patch": "x"}, log.name, False)
print(json.dumps(told["x"]["resolved"]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    exit: float
    junit: float
    swebench: float | None
    """None: it could not be had, or said nothing."""


def in_place(box: Box, task: TaskSpec, supplies: Supplies) -> tuple[float, float]:
    """The hidden tests in the agent's own box: what the exit code says, and what the report does."""
    _put_tests(box, task, supplies.tests)
    box.exec(["rm", "-f", "/tmp/report.xml"], seconds=_SECONDS, cwd="/")
    try:
        command = f"{_pytest(task)} --junitxml=/tmp/report.xml"
        done = box.exec(["bash", "-lc", command], seconds=_SECONDS, cwd=task.workdir, env=task.env)
    except Fault:
        return 0.0, 0.0
    return float(done.exit_code == 0), _by_report(task, _report(box))


def own_patch(box: Box, task: TaskSpec) -> bytes:
    """`git diff` in the agent's box, as agents of that harness hand in their work."""
    command = "git add -A >/dev/null 2>&1; git diff --cached HEAD"
    done = box.exec(
        ["bash", "-c", command], seconds=_SECONDS, cwd=task.workdir, output_bytes=_OUTPUT
    )
    return done.stdout


class Swebench:
    """Its parser, its report and its exit-code check; the package as PyPI has it, in a venv."""

    def __init__(self, folder: Path) -> None:
        self._python = folder / "bin/python"
        if not self._python.exists():
            venv.create(folder, with_pip=True)
        install = [str(self._python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*install, *_BESIDE], check=True)
        subprocess.run([*install, "--no-deps", SWEBENCH], check=True)

    def score(self, patch: bytes, task: TaskSpec, supplies: Supplies, world: World) -> float | None:
        with standing(world, task, supplies, agent_box(task, supplies)) as box:
            if not self._applied(box, task, patch):
                return 0.0
            _put_tests(box, task, supplies.tests)
            box.put(pack([Entry("eval.sh", "file", _script(task).encode())]), "/")
            try:
                done = box.exec(
                    ["bash", "-c", "/bin/bash /eval.sh 2>&1"],
                    seconds=_SECONDS,
                    cwd=task.workdir,
                    output_bytes=_OUTPUT,
                )
            except Fault:
                return 0.0
        return 0.0 if done.timed_out else self._graded(task, done.stdout)

    def _applied(self, box: Box, task: TaskSpec, patch: bytes) -> bool:
        if not patch.strip():
            return True
        box.put(pack([Entry("patch.diff", "file", patch)]), "/tmp")
        for number, command in enumerate(_APPLY):
            if number:
                again = ["bash", "-c", "git checkout -- . ; git clean -fd"]
                box.exec(again, seconds=_SECONDS, cwd=task.workdir)
            try:
                done = box.exec(
                    [*command.split(), "/tmp/patch.diff"], seconds=_SECONDS, cwd=task.workdir
                )
            except Fault:  # there is no `patch` in the image
                continue
            if done.exit_code == 0:
                return True
        return False

    def _graded(self, task: TaskSpec, log: bytes) -> float:
        # Its parser cuts ids at blanks, so do its data sets.
        ids: dict[bool, list[str]] = {False: [], True: []}
        for check in task.verifier.checks:
            ids[check.gate].append(check.id.split()[0])
        said = {
            "log": log.decode("utf-8", "replace"),
            "fails": ids[False],
            "passes": ids[True],
        }
        done = subprocess.run(
            [self._python, "-I", "-c", _GRADE],
            input=json.dumps(said),
            capture_output=True,
            text=True,
            check=True,
        )
        return float(json.loads(done.stdout))


def _script(task: TaskSpec) -> str:
    """The shape of its eval.sh; the real ones come with its data sets."""
    exports = [f"export {k}={v}" for k, v in task.env.items()]
    return "\n".join(
        [
            "#!/bin/bash",
            "set -uxo pipefail",
            *exports,
            f"cd {task.workdir}",
            ": '>>>>> Start Test Output'",
            _pytest(task),
            "SWEBENCH_TEST_EXIT_CODE=$?",
            ": '>>>>> End Test Output'",
            'echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"',
            "",
        ]
    )


def _pytest(task: TaskSpec) -> str:
    options = " ".join(f"-o '{k}={v}'" for k, v in task.verifier.options.items())
    return f"python3 -m pytest -rA {options} {' '.join(task.verifier.arguments)}"


def _put_tests(box: Box, task: TaskSpec, tests: tuple[Entry, ...]) -> None:
    places = [f"{task.workdir}/{p}" for p in task.verifier.bundle.paths]
    box.exec(["rm", "-rf", "--", *places], seconds=_SECONDS, cwd="/")
    box.put(pack(tests), task.workdir)


def _report(box: Box) -> bytes:
    try:
        with tarfile.open(fileobj=BytesIO(b"".join(box.get("/tmp/report.xml")))) as tar:
            found = tar.extractfile(tar.getmembers()[0])
            return found.read() if found else b""
    except (FileNotFoundError, tarfile.TarError, IndexError, KeyError):
        return b""


def _by_report(task: TaskSpec, xml: bytes) -> float:
    """The task's own rule for rewards, on what a JUnit report says."""
    told: dict[tuple[str, str], Outcome] = {}
    try:
        for case in ET.fromstring(xml).iter("testcase"):
            bad = any(child.tag in ("failure", "error", "skipped") for child in case)
            key = case.get("classname", ""), case.get("name", "")
            told[key] = Outcome.FAILED if bad else Outcome.PASSED
    except (ET.ParseError, ValueError):
        return 0.0
    report: Mapping[str, CheckReport] = {
        c.id: CheckReport(outcome=told[_junit(c.id)])
        for c in task.verifier.checks
        if _junit(c.id) in told
    }
    return judge(task.verifier, Evidence(ran=Ran.FINISHED, report=report)).reward


def _junit(check: str) -> tuple[str, str]:
    path, _, rest = check.partition("::")
    head, bracket, tail = rest.partition("[")
    *above, name = head.split("::")
    return ".".join([path.removesuffix(".py").replace("/", "."), *above]), name + bracket + tail


if __name__ == "__main__":
    sys.exit("run tests.bench.graders")
