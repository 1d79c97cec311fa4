"""Terminal-Bench's tasks, understood."""

import shlex
from pathlib import Path

from sandbox.adapters.harbor import common
from sandbox.adapters.harbor.compose import Service, read_service
from sandbox.adapters.harbor.foreign import Chore, Foreign, Limited, Told
from sandbox.adapters.harbor.report import Report
from sandbox.formats.dockersteps import From, Step
from sandbox.formats.harbor import mib_of
from sandbox.formats.terminal_bench import CLIENT, TerminalBenchTask

_OWN = (
    "T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME",
    "T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME",
    "T_BENCH_TASK_DOCKER_NAME_PREFIX",
    "T_BENCH_CONTAINER_LOGS_PATH",
    "T_BENCH_CONTAINER_AGENT_LOGS_PATH",
    "T_BENCH_TEST_DIR",
    "T_BENCH_TASK_LOGS_PATH",
    "T_BENCH_TASK_AGENT_LOGS_PATH",
)
SCRIPT = "/tests/run-tests.sh"
_AT = "/oracle"
"""Where a solution lies."""


def understood(task: TerminalBenchTask, report: Report) -> list[Foreign]:
    """The task; what is refused is in the report."""
    service = _service(task, report)
    context = task.folder / service.context
    dockerfile = context / service.dockerfile
    first: From | None = None
    steps: tuple[Step, ...] = ()
    if dockerfile.is_file():
        first, steps = common.read_dockerfile(dockerfile, report)
    elif service.image is None:
        report.refused("Dockerfile", "there is none", str(task.folder))
    _fields(task, report)
    return [
        Foreign(
            id=common.task_id(task.name),
            format="terminal-bench",
            folder=task.folder,
            instruction=_instruction(task),
            image=first.image if first else service.image or "",
            image_where=first.where if first else task.where(),
            steps=steps,
            context=context,
            workdir=service.workdir or common.workdir_of(steps, report, str(dockerfile)),
            env=common.env_of(steps) | service.env,
            build_seconds=600.0,
            tests=((task.folder / "tests", "."), (task.folder / "run-tests.sh", "run-tests.sh")),
            script=SCRIPT,
            scripts=(task.folder / "run-tests.sh", *common.scripts_in(task.folder / "tests")),
            protocol="terminal-bench",
            verifier_env={},
            verifier_seconds=common.limit_seconds(
                task.file.max_test_timeout_sec,
                "max_test_timeout_sec",
                report,
                task.where("max_test_timeout_sec"),
            ),
            solution=_solution(task, report),
            limits=Limited(
                wall_seconds=task.file.max_agent_timeout_sec,
                cpus=service.cpus,
                memory_mib=mib_of(service.memory) if service.memory else None,
            ),
            told=Told(
                difficulty=common.difficulty_of(task.file.difficulty),
                category=task.file.category,
                source=f"Terminal-Bench: {task.name}",
                tags=task.file.tags,
                expert_minutes=round(task.file.expert_time_estimate_min or 0) or None,
            ),
        )
    ]


def _service(task: TerminalBenchTask, report: Report) -> Service:
    if task.compose is None:
        return Service()
    service = read_service(task.compose, CLIENT, dict.fromkeys(_OWN, ""), report)
    if service.command:
        note = f"`{service.command}` would go on in the box"
        where = task.compose.where(("services", CLIENT, "command"))
        report.refused(f"compose.services.{CLIENT}.command", note, where)
    return service


def _instruction(task: TerminalBenchTask) -> str:
    return task.file.instruction


def _fields(task: TerminalBenchTask, report: Report) -> None:
    file, where = task.file, task.where
    report.mapped("instruction", "instruction.md", where("instruction"))
    report.mapped("max_agent_timeout_sec", "limits.wall_seconds", where("max_agent_timeout_sec"))
    report.mapped("max_test_timeout_sec", "verifier.seconds", where("max_test_timeout_sec"))
    for key in ("category", "tags", "difficulty", "expert_time_estimate_min"):
        if task.has(key):
            report.mapped(
                key, f"metadata.{key.replace('_time_estimate_min', '_minutes')}", where(key)
            )
    if file.difficulty == "unknown":
        report.changed("difficulty", "medium: `unknown` is none of ours", where("difficulty"))
    if file.parser_name == "pytest":
        report.mapped("parser_name", "what pytest prints is read in the box", where("parser_name"))
    else:
        note = f"`{file.parser_name}` reads what a peer's own test harness prints"
        report.refused("parser_name", note, where("parser_name"))
    if file.run_tests_in_same_shell:
        note = "the tests have a shell of their own: the state of the agent's is no submission"
        report.changed("run_tests_in_same_shell", note, where("run_tests_in_same_shell"))
    for key, why in (
        ("author_name", "a task here has a source, and no authors"),
        ("author_email", "a task here has a source, and no authors"),
        ("disable_asciinema", "every rollout is recorded"),
        ("estimated_duration_sec", "rollouts are not sorted by it"),
        ("junior_time_estimate_min", "there is no such figure here"),
        ("run_tests_in_same_shell", "as it is here"),
    ):
        if task.has(key) and not (
            key == "run_tests_in_same_shell" and file.run_tests_in_same_shell
        ):
            report.dropped(key, why, where(key))


def _solution(task: TerminalBenchTask, report: Report) -> Chore | None:
    script = task.folder / "solution.sh"
    if script.is_file():
        report.mapped("solution.sh", "solution/solution.patch: what it leaves behind", str(script))
        return Chore(
            name="solution.sh",
            where=str(script),
            files=((script, f"{_AT}/solution.sh"),),
            script=f"bash {_AT}/solution.sh",
            seconds=task.file.max_agent_timeout_sec,
        )
    if task.commands:
        where = str(task.folder / "solution.yaml")
        report.mapped("solution.yaml", "solution/solution.patch: what it leaves behind", where)
        if odd := next((c for c in task.commands if not c.append_enter), None):
            note = f"keys that are typed and not entered: {odd.command[:60]!r}"
            report.refused("solution.yaml", note, where)
        lines = "\n".join(c.command for c in task.commands)
        return Chore(
            name="solution.yaml",
            where=where,
            script=f"bash -c {shlex.quote(lines)}",
            seconds=task.file.max_agent_timeout_sec,
        )
    report.changed("solution", "there is none: an empty one is written", str(task.folder))
    return None


def leftovers(task: TerminalBenchTask, report: Report) -> None:
    """Files of the folder that are no part of the format."""
    known = {
        "task.yaml", "Dockerfile", "docker-compose.yaml", "solution.sh", "solution.yaml",
        "run-tests.sh", "tests", ".dockerignore",
    }  # fmt: skip
    names = sorted(p.name for p in Path(task.folder).iterdir())
    extra = [name for name in names if name not in known]
    if extra:
        note = "beside the task; of use only where the Dockerfile copies it"
        report.dropped(", ".join(extra[:20]), note, str(task.folder))
