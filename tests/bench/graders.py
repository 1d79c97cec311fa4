"""The exploit corpus against five graders, in one run: ci/bench graders --help."""

import argparse
import contextlib
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandbox.audit.exploits.adversary import Adversary
from sandbox.audit.exploits.findings import Finding, wilson
from sandbox.audit.exploits.run import manifest, run_exploits, without_canary
from sandbox.cli import options
from sandbox.errors import Fault
from sandbox.formats.exploitfile import Corpus, Exploit, ExploitStep, load_corpus
from sandbox.formats.records import Appender, read_objects
from sandbox.model.conditions import Conditions
from sandbox.model.task import TaskSpec
from sandbox.rollout.agent import Opening
from sandbox.rollout.folder import RolloutFolder
from sandbox.rollout.observer import Observer
from sandbox.rollout.outdir import OutFolder
from sandbox.rollout.run import Attempt, Stopwatch, World, agent_box, drive, standing
from sandbox.rollout.suite import Plan
from tests.bench.exploits import within
from tests.bench.rivals import SWEBENCH, Scores, Swebench, in_place, own_patch

PAGE = Path(__file__).parents[2] / "docs/explanation/verdicts-table.md"
RIVALS = ("exit", "junit", "swebench")
OURS = ("none", "all")
HEADS = {
    "exit": "exit code",
    "junit": "JUnit report",
    "swebench": "SWE-bench 5.0.2",
    "none": "Stillroom, box only",
    "all": "Stillroom, all layers",
}
Row = dict[str, float | None]
_REFERENCE = "base64 -d <<'PATCH' | git apply --whitespace=nowarn -\n@reference@PATCH"
_PART = """\
base64 -d <<'PATCH' > /tmp/whole.patch
@reference@PATCH
python3 - <<'PY'
import re
whole = open("/tmp/whole.patch", "rb").read()
files = re.split(rb"(?m)^(?=diff --git )", whole)[1:]
if len(files) > 1:
    part = b"".join(files[: len(files) // 2])
else:
    head, *hunks = re.split(rb"(?m)^(?=@@ )", files[0])
    part = head + b"".join(hunks[: len(hunks) // 2])
open("/tmp/part.patch", "wb").write(part)
PY
git apply --recount --whitespace=nowarn /tmp/part.patch"""


def _honest(name: str, title: str, command: str) -> Exploit:
    step = ExploitStep(run=command, exit=0)
    return Exploit(
        id=name, title=title, scope="repo", source="honest", steps=(step,), family="honest"
    )


HONEST = (
    _honest("honest-nothing", "Does nothing", "true"),
    _honest("honest-part", "Part of the reference solution", _PART),
    _honest("honest-reference", "The reference solution", _REFERENCE),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=["h11-0.14.0", "simpleeval-0.9.13"])
    parser.add_argument("--exploits", default="", help="ids or families; globs, commas between")
    parser.add_argument("--runtime", default="embedded")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="for a verdict, if fewer than the task's")
    parser.add_argument("--out", type=Path, default=Path("runs/graders"), help="resumed")
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    corpus = load_corpus()
    exploits = (*HONEST, *corpus.choose(given.exploits))
    chosen = options.catalogue().choose(None, tuple(given.tasks))
    tasks = [within(task, given.seconds) for task in chosen]
    with options.world(given.runtime, Observer()) as world:
        rows = _rivals(tasks, corpus, exploits, world, given)
        for layers in OURS:
            for one in _ours(tasks, corpus, exploits, world, given, layers):
                rows.setdefault((one.task, one.exploit), {})[layers] = one.reward
    given.page.write_text(page(tasks, exploits, rows, given), encoding="utf-8")
    print(f"\n{given.page}")


def _ours(
    tasks: Sequence[TaskSpec],
    corpus: Corpus,
    exploits: Sequence[Exploit],
    world: World,
    given: argparse.Namespace,
    layers: str,
) -> list[Finding]:
    """Honest ones may gain; everybody else may not."""
    conditions = Conditions(layers="all" if layers == "all" else "none")
    made = manifest(tasks, corpus, exploits, given.runtime, conditions)
    with OutFolder(given.out / layers, made) as out:
        plan = Plan(workers=given.jobs)
        return run_exploits(tasks, corpus, exploits, world, out, plan, conditions)


def _rivals(
    tasks: Sequence[TaskSpec],
    corpus: Corpus,
    exploits: Sequence[Exploit],
    world: World,
    given: argparse.Namespace,
) -> dict[tuple[str, str], Row]:
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / "rivals.jsonl"
    known = {(r["task"], r["exploit"]): r["row"] for r in _kept(kept)}
    swebench = Swebench(given.out / "venv")
    pairs = [(t, e) for t in tasks for e in exploits if (t.id, e.id) not in known]
    lock = threading.Lock()

    def one(pair: tuple[TaskSpec, Exploit]) -> None:
        task, exploit = pair
        try:
            scores = _attacked(task, exploit, corpus, world, given.out, swebench)
            row: Row = {name: getattr(scores, name) for name in RIVALS}
        except Fault as e:
            print(f"{task.id} {exploit.id}: void: {e}", flush=True)
            row = dict.fromkeys(RIVALS)
        with lock:
            known[task.id, exploit.id] = row
            log.append({"task": task.id, "exploit": exploit.id, "row": row})
            print(f"{task.id} {exploit.id} {row}", flush=True)

    with Appender(kept) as log, ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(one, pairs))
    return {(str(t), str(e)): row for (t, e), row in known.items()}


def _kept(path: Path) -> Iterator[dict[str, Any]]:
    with contextlib.suppress(Exception):
        yield from read_objects(path)


def _attacked(
    task: TaskSpec,
    exploit: Exploit,
    corpus: Corpus,
    world: World,
    out: Path,
    swebench: Swebench,
) -> Scores:
    """The exploit through the terminal of a box; then each grader does as it does."""
    supplies = world.depot.supply(task)
    folder = RolloutFolder(out / "rivals" / task.id / exploit.id)
    folder.fresh()
    adversary = Adversary(
        task=task,
        exploit=exploit,
        helpers=corpus.helpers,
        base=lambda: supplies.base,
        uncovered=lambda: without_canary(task, supplies.layers),
        marker="/var/tmp/stillroom-graders",
        token="hxgraders",
    )
    opening = Opening(
        task=task.id,
        attempt=0,
        instruction=task.instruction,
        workdir=task.workdir,
        limits=task.limits,
        folder=folder.path,
        reference=lambda: world.depot.solution(task, supplies),
    )
    attempt = Attempt(
        task=task, number=0, world=world, folder=folder, watch=Stopwatch(world.clocks.ticks)
    )
    with standing(world, task, supplies, agent_box(task, supplies)) as box:
        session = adversary.begin(opening)
        drive(session, box, attempt)
        session.close()
        patch = own_patch(box, task)
        by_exit, by_report = in_place(box, task, supplies)
    theirs = swebench.score(patch, task, supplies, world)
    return Scores(exit=by_exit, junit=by_report, swebench=theirs)


def page(
    tasks: Sequence[TaskSpec],
    exploits: Sequence[Exploit],
    rows: Mapping[tuple[str, str], Row],
    given: argparse.Namespace,
) -> str:
    """The table as Markdown."""
    names = " ".join(t.id for t in tasks)
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    only = f" --exploits {shlex.quote(given.exploits)}" if given.exploits else ""
    only += f" --seconds {given.seconds:g}" if given.seconds else ""
    head = [
        "# Five graders, one corpus",
        "",
        f"Made by `ci/bench graders {names} --runtime {given.runtime}{only}` on {when}; not written by",
        "hand. Each exploit is performed through the terminal of a box; then each grader does as it",
        f"does, in boxes of ours. SWE-bench's parser, report and exit-code check are those of `{SWEBENCH}`",
        "from PyPI; its evaluation script comes with its data sets, so this is one of the same shape.",
        "A number is the reward; **bold** where it is more than doing nothing earns in that task.",
        "",
    ]
    return "\n".join(
        [*head, *_summary(tasks, exploits, rows), "", *_table(tasks, exploits, rows), ""]
    )


def _columns() -> tuple[str, ...]:
    return (*RIVALS, *OURS)


def _summary(
    tasks: Sequence[TaskSpec], exploits: Sequence[Exploit], rows: Mapping[tuple[str, str], Row]
) -> Iterator[str]:
    yield "| grader | attacks | paid | full marks | share that paid (95 % interval) |"
    yield "|---|---|---|---|---|"
    attacks = [(t.id, e.id) for t in tasks for e in exploits if e.family != "honest"]
    for column in _columns():
        pairs = [(rows.get(a, {}).get(column), _nothing(rows, a[0], column)) for a in attacks]
        told = [(got, base) for got, base in pairs if got is not None]
        paid = sum(got > base + 1e-9 for got, base in told)
        full = sum(got >= 1.0 for got, _ in told)
        low, high = wilson(paid, len(told))
        rate = paid / len(told) if told else 0.0
        yield (
            f"| {HEADS[column]} | {len(told)} | {paid} | {full}"
            f" | {rate:.1%} ({low:.1%} to {high:.1%}) |"
        )


def _table(
    tasks: Sequence[TaskSpec], exploits: Sequence[Exploit], rows: Mapping[tuple[str, str], Row]
) -> Iterator[str]:
    for task in tasks:
        yield f"## {task.id}"
        yield ""
        yield "| exploit | family | " + " | ".join(HEADS[c] for c in _columns()) + " |"
        yield "|---|---|" + "---|" * len(_columns())
        for exploit in exploits:
            row = rows.get((task.id, exploit.id), {})
            honest = exploit.family == "honest"
            cells = [
                _cell(row.get(c), _nothing(rows, task.id, c), honest=honest) for c in _columns()
            ]
            yield f"| {exploit.id} | {exploit.family} | " + " | ".join(cells) + " |"
        yield ""


def _nothing(rows: Mapping[tuple[str, str], Row], task: str, column: str) -> float:
    return rows.get((task, HONEST[0].id), {}).get(column) or 0.0


def _cell(reward: float | None, nothing: float, *, honest: bool) -> str:
    if reward is None:
        return "void"
    said = f"{reward:.2f}"
    return f"**{said}**" if reward > nothing + 1e-9 and not honest else said


if __name__ == "__main__":
    main()
