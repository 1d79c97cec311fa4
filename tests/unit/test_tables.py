"""What a run's table says below its rows."""

from dataclasses import replace

from sandbox.model.record import Rollout, VerdictRecord
from sandbox.model.task import Digest, TaskId
from sandbox.report.summary import summarize
from sandbox.report.tables import differences_table, rollouts_table, summary_line, warnings
from sandbox.rollout.compare import Difference


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


def test_a_forgery_is_counted_and_shown_as_what_it_is():
    verdict = VerdictRecord(reward=0.0, resolved=False, reason="", checks={}, flags=("forged",))
    rollouts = [replace(a_rollout(n, ""), verdict=verdict) for n in range(2)]
    summary = summarize([*rollouts, a_rollout(2, "")])
    assert summary.flags == {"forged": 2}
    assert summary_line(summary).startswith("1 of 3 resolved, 2 not resolved, 2 forged, mean")
    column = list(rollouts_table(rollouts).columns[2].cells)
    assert [str(cell) for cell in column] == ["forged", "forged"]


def test_differences_are_shown_and_obey_nobody():
    one = Difference(task=TaskId("toy"), attempt=1, what="a\x1b[2J", theirs="passed", ours="failed")
    cells = [str(next(iter(column.cells))) for column in differences_table([one]).columns]
    assert cells == ["toy", "1", "a\\x1b[2J", "passed", "failed"]
