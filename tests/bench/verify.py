"""What a verdict costs beside the tests alone: a task's reference solution, on each runtime.

    ci/bench verify [--task click-8.1.3] [--runtime embedded] [--rounds 5]

bare: `python3 -m pytest` in a box that is there, with solution and tests in place. plain: a verdict
that rests on the tests alone, from the patch to the evidence, its box included. layers: one with all
that the task's verdicts rest on. Medians of wall seconds, interleaved; compare within one run only.
"""

import argparse
import json
import os
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from sandbox.errors import StillroomError
from sandbox.formats.home import bundled_home
from sandbox.formats.taskfile import load_task
from sandbox.grading.judge import judge_as_asked
from sandbox.grading.setting import setting
from sandbox.grading.verify import verify
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.record import Submission
from sandbox.model.task import TaskSpec
from sandbox.rollout import plugins
from sandbox.runtime.base import Runtime
from sandbox.runtime.store import default_store
from sandbox.runtime.supplies import Depot, Supplies
from sandbox.runtime.tarball import pack

TASKS = ("click-8.1.3", "jinja2-3.1.4")
_FACTOR, _SECONDS = 1.1, 0.5
_LAYERS_FACTOR, _LAYERS_SECONDS = 2.5, 1.5


def bare(task: TaskSpec, patch: bytes, supplies: Supplies, runtime: Runtime) -> float:
    """Seconds of the test run itself."""
    spec = setting(task, supplies, USUAL).box
    with runtime.create(spec) as box:
        applied = box.exec(["git", "apply", "-"], input=patch, seconds=60)
        assert applied.exit_code == 0, applied.stderr
        removed = ["rm", "-rf", *task.verifier.bundle.paths]
        assert box.exec(removed, seconds=60).exit_code == 0
        box.put(pack(supplies.tests), task.workdir)
        options = "".join(f"{k} = {v}\n" for k, v in sorted(task.verifier.options.items()))
        box.exec(["tee", "/tmp/pytest.ini"], input=f"[pytest]\n{options}".encode(), seconds=60)
        argv = ["/usr/bin/python3", "-m", "pytest", "-q", "-c", "/tmp/pytest.ini"]
        more = ["--rootdir", task.workdir, *task.verifier.arguments]
        began = time.monotonic()
        done = box.exec([*argv, *more], seconds=task.verifier.seconds, env=task.env)
        seconds = time.monotonic() - began
    assert done.exit_code in (0, 1), done.stderr
    return seconds


def whole(
    task: TaskSpec, made: Submission, supplies: Supplies, runtime: Runtime, layers: Conditions
) -> float:
    """Seconds of a verdict."""
    began = time.monotonic()
    evidence = verify(task, made, runtime, supplies, conditions=layers)
    seconds = time.monotonic() - began
    verdict = judge_as_asked(task.verifier, evidence, supplies.layers)
    assert verdict.resolved, verdict.reason
    return seconds


def measure(name: str, task: TaskSpec, depot: Depot, rounds: int) -> dict[str, object]:
    supplies = depot.supply(task)
    made = Submission(task=task.id, patch=depot.solution(task, supplies))
    times: dict[str, list[float]] = {"bare": [], "plain": [], "layers": []}
    with closing(plugins.runtime(name, depot.store)) as runtime:
        for _ in range(rounds + 1):
            times["bare"].append(bare(task, made.patch, supplies, runtime))
            plain = Conditions(layers="none")
            times["plain"].append(whole(task, made, supplies, runtime, plain))
            if task.verifier.layers:
                times["layers"].append(whole(task, made, supplies, runtime, USUAL))
    # The first of each only warms up.
    found = {key: round(median(ts[1:]), 3) for key, ts in times.items() if ts}
    return {"task": task.id, "runtime": name, "rounds": rounds, **found}


def told(found: dict[str, object]) -> str:
    bare_seconds, plain = float(str(found["bare"])), float(str(found["plain"]))
    bound = _FACTOR * bare_seconds + _SECONDS
    line = f"{found['task']!s:<22} {found['runtime']!s:<9} {bare_seconds:>7.2f} {plain:>7.2f}"
    line += f" {plain / bare_seconds:>5.2f} {bound:>7.2f}"
    if "layers" in found:
        layers = float(str(found["layers"]))
        bound = _LAYERS_FACTOR * bare_seconds + _LAYERS_SECONDS
        line += f" {layers:>7.2f} {layers / bare_seconds:>5.2f} {bound:>7.2f}"
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", action="append")
    parser.add_argument("--runtime", action="append", choices=["embedded", "docker"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("bench-verify.json"))
    options = parser.parse_args()
    depot = Depot(default_store(os.environ), lambda *_: None)
    head = f"{'task':<22} {'runtime':<9} {'bare':>7} {'plain':>7} {'x':>5} {'bound':>7}"
    print(f"{head} {'layers':>7} {'x':>5} {'bound':>7}")
    results = []
    for name in options.runtime or ["embedded", "docker"]:
        for task in options.task or TASKS:
            spec = load_task(bundled_home(), task)
            try:
                results.append(measure(name, spec, depot, options.rounds))
            except StillroomError as e:
                print(f"{task:<22} {name:<9} left out: {e}")
                continue
            print(told(results[-1]), flush=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
