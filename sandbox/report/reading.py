"""A run's folder to the story of one of its rewards. Reads files, and makes no box."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sandbox.errors import Fault, UserError
from sandbox.formats.layerfile import load_layers
from sandbox.formats.records import read_results
from sandbox.model.layers import BARE, Layers
from sandbox.model.task import TaskId, TaskSpec
from sandbox.report.story import Story, story, void
from sandbox.rollout.folder import CAST, EVENTS, EVIDENCE, PATCH
from sandbox.rollout.outdir import RESULTS, find_rollout

_FILES = {
    EVIDENCE: "what the boxes showed; `log` is what the tests printed",
    PATCH: "what was graded",
    EVENTS: "what the agent did: stillroom show RUN TASK",
    CAST: "what its terminal showed: stillroom show RUN TASK --replay",
    "agent.log": "what the agent's program said",
}


def read_story(
    run: Path, task: str, attempt: int | None, load: Callable[[TaskId], TaskSpec]
) -> tuple[Story, list[str]]:
    """Of the last try if there were several, and where its files are. Raises UserError."""
    folder = find_rollout(run, task, attempt)
    number = int(folder.path.name)
    records = [r for r in read_results(run / RESULTS) if (r.task, r.attempt) == (task, number)]
    if not records:
        raise UserError(
            f"`{task}` attempt {number} has not ended in {run}",
            hint="the command that began the run goes on with it",
        )
    files = [
        f"{folder.path / name}: {said}"
        for name, said in _FILES.items()
        if (folder.path / name).exists()
    ]
    record = records[-1]
    if record.verdict is None:
        return void(record), files
    spec = load(record.task)
    layers, lacks = _layers(spec)
    found = story(spec, folder.read_evidence(), layers, record)
    return replace(found, doubts=(*lacks, *found.doubts)), files


def _layers(task: TaskSpec) -> tuple[Layers, tuple[str, ...]]:
    try:
        return load_layers(task), ()
    except Fault as e:
        return BARE, (f"{e}: told as if the tests were all there is",)
