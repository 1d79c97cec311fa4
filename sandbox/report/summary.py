"""What a run came to, in numbers. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from sandbox.model.record import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    rollouts: int
    resolved: int
    failed: int
    flags: Mapping[str, int]
    """Of those that failed: flag → how many have it."""
    void: int
    mean_reward: float | None
    """Over those with a verdict; None when there is none."""
    median_overhead_seconds: float | None
    """Per rollout, beyond the checks' and the agent's own time."""


def summarize(rollouts: Iterable[Rollout]) -> Summary:
    found = list(rollouts)
    verdicts = [r.verdict for r in found if r.verdict]
    resolved = sum(v.resolved for v in verdicts)
    overheads = [overhead_seconds(r) for r in found if r.verdict]
    return Summary(
        rollouts=len(found),
        resolved=resolved,
        failed=len(verdicts) - resolved,
        flags=dict(sorted(Counter(flag for v in verdicts for flag in v.flags).items())),
        void=sum(r.fault is not None for r in found),
        mean_reward=sum(v.reward for v in verdicts) / len(verdicts) if verdicts else None,
        median_overhead_seconds=round(median(overheads), 3) if overheads else None,
    )


def overhead_seconds(rollout: Rollout) -> float:
    """Neither the checks' time nor the agent's: boxes, collecting, applying, starting the runner."""
    seconds = rollout.seconds
    return seconds.get("total", 0.0) - seconds.get("checks", 0.0) - seconds.get("agent", 0.0)
