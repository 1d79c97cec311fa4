"""The files of one rollout: OUT/rollouts/<task>/<attempt>/."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from sandbox.formats import jsonfile
from sandbox.formats.records import Appender
from sandbox.formats.shape import plain
from sandbox.model.step import Keys, Run, Step
from sandbox.model.verdict import Evidence
from sandbox.runtime.store import remove_tree


class RolloutFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def fresh(self) -> None:
        """What an earlier, unfinished try left is no part of this one."""
        remove_tree(self.path)
        self.path.mkdir(parents=True)

    @contextmanager
    def events(self) -> Iterator[Callable[[Step], None]]:
        """events.jsonl: one line per step, as it happens."""
        with Appender(self.path / "events.jsonl", sync=False) as out:
            count = 0

            def log(step: Step) -> None:
                nonlocal count
                count += 1
                seen = {"type": "observation", **plain(step.observation)}
                out.append({"step": count, "action": _action(step), "observation": seen})

            yield log

    def write_patch(self, patch: bytes) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "submission.patch").write_bytes(patch)

    def write_evidence(self, evidence: Evidence) -> None:
        jsonfile.write(self.path / "evidence.json", jsonfile.dumps(evidence))

    def read_evidence(self) -> Evidence:
        """Raises SpecError."""
        return jsonfile.load(self.path / "evidence.json", Evidence)


def _action(step: Step) -> dict[str, Any]:
    kind = {Run: "run", Keys: "keys"}.get(type(step.action), "submit")
    said = {"type": kind, **plain(step.action)}
    # "As long as it takes" is infinity for an agent, and nothing that JSON can say.
    return {k: None if isinstance(v, float) and not isfinite(v) else v for k, v in said.items()}
