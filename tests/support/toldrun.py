"""A run's folder as agents leave it, the odd ones among them: what exports are made from."""

from dataclasses import replace
from pathlib import Path

from sandbox.formats.records import Appender
from sandbox.formats.trajectory import Trajectory, read_trajectory
from sandbox.model.record import Ending, FaultRecord, Rollout, VerdictRecord
from sandbox.model.step import (
    Action,
    Keys,
    ModelCall,
    Observation,
    Run,
    Screen,
    Signal,
    Status,
    Submit,
    Wait,
)
from sandbox.model.task import Digest, TaskId
from sandbox.rollout.folder import RolloutFolder
from sandbox.rollout.outdir import rollout_folder
from tests.support.homes import a_task

PATCH = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
FIRST = ModelCall(
    name="lab/m-1",
    message="I look around.",
    reasoning="What is here?",
    calls=1,
    prompt_tokens=3,
    completion_tokens=2,
    cached_tokens=1,
    cost_usd=0.25,
    prompt_token_ids=(1, 2, 3),
    completion_token_ids=(4, 5),
    logprobs=(-0.5, -0.25),
)
SECOND = ModelCall(
    name="lab/m-1",
    message="Done.",
    calls=1,
    prompt_tokens=7,
    completion_tokens=1,
    cost_usd=0.5,
    prompt_token_ids=(1, 2, 3, 4, 5, 6, 7),
    completion_token_ids=(8,),
    logprobs=(-0.125,),
)
LOOKED: list[tuple[Action, Observation | None]] = [
    (Run("ls -l", model=FIRST), Observation(output="setup.py\n", exit_code=0, cwd="/w", total_bytes=9, seconds=0.5)),
    (Submit(model=SECOND), None),
]  # fmt: skip
"""What a model did that tells of itself."""
ODD: list[tuple[Action, Observation | None]] = [
    (Run("printf '\\377\\0'", 5.0, tty=False, stdin=""), Observation(output="\\xff\\x00", exit_code=1)),
    (Keys(b"\xff\x00\x1b[A", named=("C-c",)), Observation(output="\x1b[31m\x07\x9b\u2028\x85", status=Status.RUNNING)),
    (Run("\udcff\ud800 \U0001f600"), Observation(output="no", status=Status.REFUSED)),
    (Wait(2.0, text="$ ", screen=True), Observation(
        output="", status=Status.AWAITING_INPUT, screen=Screen(lines=("a", ""), row=0, col=1, cols=80))),
    (Run("yes", on_timeout="keep"), Observation(
        output="y\n" * 50_000, status=Status.TIMED_OUT, exit_code=-2, truncated=True, spool="output-0001.txt",
        background="job\n", limit="the memory limit of 64 MiB was reached", signals=("INT",), seconds=float("inf"))),
    (Signal("KILL", "session"), Observation(output="\0", exit_code=137)),
    (Run("x", model=ModelCall(message="\udcfe", calls=0, reasoning="r", logprobs=(float("-inf"),))), None),
]  # fmt: skip
"""What a box may print, and what an agent may say."""


def a_rollout(task: str = "a-1", attempt: int = 0) -> Rollout:
    return Rollout(
        task=TaskId(task),
        task_digest=Digest("sha256:" + "1" * 64),
        attempt=attempt,
        agent="shell:./agent",
        runtime="fake",
        started="2024-05-15T12:00:00Z",
        ending=Ending.SUBMITTED,
        steps=1,
        patch_sha256="2" * 64,
        patch_bytes=len(PATCH),
        verdict=VerdictRecord(
            reward=0.5, resolved=False, reason="1 check did not pass", checks={"t::a": "failed"}
        ),
        seconds={"box": 0.5, "agent": 2.0, "collect": 0.25, "verify": 1.0, "total": 4.0},
    )


def a_void(task: str = "a-1", attempt: int = 1) -> Rollout:
    fault = FaultRecord(code="runtime", message="the box was lost \u2028", retry=True)
    return replace(a_rollout(task, attempt), verdict=None, ending=None, fault=fault)


def write_events(
    folder: RolloutFolder,
    home: Path,
    steps: list[tuple[Action, Observation | None]],
    started: str = "2024-05-15T12:00:00Z",
) -> None:
    """As a rollout writes them, a quarter of a second apart."""
    now = iter(i / 4 for i in range(10_000))
    folder.fresh()
    task = replace(a_task(home), instruction="# Mend it\n\nü \U0001f600\n")
    with folder.events(lambda: next(now), started) as events:
        events.task(task, 0)
        for number, (action, seen) in enumerate(steps, 1):
            events.action(number, action)
            if seen:
                events.observation(number, seen)


def told(
    tmp_path: Path,
    steps: list[tuple[Action, Observation | None]],
    rollout: Rollout | None = None,
    patch: bytes | None = PATCH,
) -> Trajectory:
    folder = RolloutFolder(tmp_path / "told")
    write_events(folder, tmp_path / "home", steps)
    return read_trajectory(rollout or a_rollout(), folder.read_events(), "events.jsonl", patch)


def write_run(run: Path, home: Path) -> Path:
    """One that tells of its model, an odd one that is void, one that never began, a graded one."""
    graded = replace(a_rollout("b-1"), ending=Ending.GRADED)
    early = replace(a_void("c-1", 0), steps=0)
    for rollout, steps in ((a_rollout(), LOOKED), (a_void(), ODD)):
        folder = rollout_folder(run, rollout.task, rollout.attempt)
        write_events(folder, home, steps)
        folder.write_patch(PATCH)
        with folder.cast(24, 80, wall=lambda: 1.0e9, ticks=lambda: 0.0, title="t") as cast:
            cast.marker("ls -l")
            cast.output("ü\x1b[31m\r\n".encode() + b"\xff\x00")
            cast.typed(b"q")
            cast.resized(40, 100)
    with Appender(run / "results.jsonl") as out:
        for rollout in (a_rollout(), a_void(), graded, early):
            out.append(rollout)
    return run
