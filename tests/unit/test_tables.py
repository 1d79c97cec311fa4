"""What a run's table says below its rows."""

from sandbox.model.record import Rollout, VerdictRecord
from sandbox.model.task import Digest, TaskId
from sandbox.report.tables import warnings


def a_rollout(number: int, warning: str) -> Rollout:
    return Rollout(
        task=TaskId("toy"),
        task_digest=Digest("x"),
        attempt=number,
        agent="nop",
        runtime="fake",
        started="",
        verdict=VerdictRecord(reward=1.0, resolved=True, reason="", checks={}),
        warning=warning,
    )


def test_what_verdicts_were_made_without_is_told_once_and_obeys_nobody():
    rollouts = [a_rollout(n, "half a clock\x1b[2J" if n else "") for n in range(3)]
    assert warnings(rollouts) == ["warning: half a clock\\x1b[2J; 2 of 3 verdicts"]
    assert warnings(rollouts[:1]) == []
