"""One run held against another: every check's outcome, not only what failed. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sandbox.model.verdict import CheckReport, Evidence, Outcome, Ran

_MISSING = CheckReport(outcome=Outcome.MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A check that ended in another way than in the first run."""

    check: str
    before: CheckReport
    after: CheckReport

    @property
    def renamed(self) -> bool:
        """It is in one of the runs only: its name is not the same."""
        return Outcome.MISSING in (self.before.outcome, self.after.outcome)

    def __str__(self) -> str:
        said = self.after.message or self.before.message
        first = said.strip().splitlines()[:1]
        more = f" ({first[0][:200]})" if first else ""
        return f"{self.before.outcome} → {self.after.outcome}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What differs between two runs; false when nothing does."""

    run: str = ""
    """How the runs as wholes differ. Then no check is to blame."""
    changes: tuple[Change, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.run or self.changes)


def compare(base: Evidence, other: Evidence) -> Difference:
    """Everything that `other` shows and `base` does not, and the other way round."""
    changes = tuple(_changes(base.report, other.report))
    if (base.ran, _detail(base)) != (other.ran, _detail(other)):
        return Difference(run=f"{_ended(base)} → {_ended(other)}", changes=changes)
    if changes and base.ran is not Ran.FINISHED:
        # Cut short, each at its own moment: which checks were told by then is no check's doing.
        said = f"{_ended(base)}, after {len(base.report)} and {len(other.report)} tests"
        return Difference(run=said, changes=changes)
    alike = base.asked == other.asked  # a canary that fails is told in it
    if not changes and alike and base.exit_code != other.exit_code:
        return Difference(run=f"exit code {base.exit_code} → {other.exit_code}")
    return Difference(changes=changes)


def _changes(base: Mapping[str, CheckReport], other: Mapping[str, CheckReport]) -> Iterator[Change]:
    for check in sorted(base.keys() | other.keys()):
        before, after = base.get(check, _MISSING), other.get(check, _MISSING)
        if before.outcome is not after.outcome:
            yield Change(check=check, before=before, after=after)


def _detail(evidence: Evidence) -> tuple[str, ...]:
    """What could not be collected is told in the order of collection, which may be a shift."""
    return tuple(sorted(re.split("[:,] ", evidence.detail)))


def _ended(evidence: Evidence) -> str:
    said = str(evidence.ran).replace("_", " ")
    return f"{said}: {evidence.detail}" if evidence.detail else said
