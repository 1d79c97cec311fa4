"""Are the canaries that were found any good? They are held against chance and wrong solutions."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sandbox.audit.canary.items import Report, by_assertion, told_as
from sandbox.audit.canary.quest import Quest
from sandbox.audit.canary.search import Search, unreported
from sandbox.model.layers import Edit
from sandbox.model.verdict import Outcome, Seen

_DRAWS = ("one",)
_CYCLES = 2
"""After the first, something else is tried for what was given up."""
_MOST_CULPRITS = 12
UNSTEADY = "its canary does not fail every time"
SPOILS = "its canary makes other tests fail"
FORGIVES = "a wrong solution passes it and its canary"
WITHOUT = "its canary passes without the solution"


class Bench(Protocol):
    """Where the suite is run, edited, against a patch: see canary.bench."""

    def run(self, edits: Sequence[Edit], patch: bytes, paths: Sequence[str] = ()) -> Seen: ...

    def run_all(self, pairs: Sequence[tuple[Sequence[Edit], bytes]]) -> list[Seen]: ...


@dataclass(slots=True)
class Admission:
    """The canaries of one task, until nothing speaks against any of them."""

    search: Search
    bench: Bench
    solution: bytes
    wrong: Mapping[str, bytes]
    """Name → patch of a solution that is not right; "" is the base, as it is."""
    note: Callable[[str, int, int], None]
    reasons: dict[str, str] = field(default_factory=dict)
    """Check → why a canary of it was given up last."""
    told: dict[str, str] = field(default_factory=dict)
    """Check → the id under which its canary reports."""
    mutant_pairs: int = 0
    """Pairs of a check and a wrong solution that passes it: of so many a canary was asked."""
    forgiven: int = 0
    """So many of them passed their canary at first."""
    _real: dict[str, Report] = field(default_factory=dict)

    def admit(self) -> None:
        for cycle in range(_CYCLES):
            dropped = self._steady() + self._apart() + self._hold_against_wrong(first=cycle == 0)
            if not dropped:
                return
            if cycle < _CYCLES - 1:
                self.search.try_functions()
        # Ids of rows hang on which of them are edited.
        self._steady()

    def _edits(self, quests: Sequence[Quest] | None = None) -> list[Edit]:
        chosen = self.search.quests.values() if quests is None else quests
        return [e for q in chosen for e in q.kept()]

    def _steady(self) -> int:
        """All of them at once: what ends the run goes, and then what does not fail."""
        seen, dropped = self._together(), 0
        for _ in range(_MOST_CULPRITS):
            cut = self._cut_short(seen)
            if not cut:
                break
            dropped += self._give_up(cut)
            seen = self._together()
        self.told = told_as(self.search.usual, seen.report)
        bad = {
            check: UNSTEADY
            for quest in self.search.quests.values()
            for check in quest.covered
            if not by_assertion(seen.report.get(self.told.get(check, "")), quest.classes())
        }
        return dropped + self._give_up(bad)

    def _together(self) -> Seen:
        self.note("all canaries together", 0, 1)
        return self.bench.run(self._edits(), self.solution)

    def _cut_short(self, seen: Seen) -> dict[str, str]:
        """Checks of the function that a run came to and did not come through, if there is one."""
        # A runner that a test stops says that it came to its end.
        missed = unreported(seen, list(self.search.usual))
        first = missed[0] if missed else ""
        for quest in self.search.quests.values():
            if first in quest.checks and quest.covered:
                return dict.fromkeys(quest.covered, SPOILS)
        return {}

    def _apart(self) -> int:
        """Half of them, as a verdict has it: they fail again, and the others pass meanwhile."""
        dropped = 0
        for draw in _DRAWS:
            quests = [q for q in self.search.quests.values() if q.covered]
            heads = [q for q in quests if _heads(q.name, draw)]
            tails = [q for q in quests if not _heads(q.name, draw)]
            self.note("some canaries, the others as they are", 0, 1)
            pairs = [(self._edits(half), self.solution) for half in (heads, tails)]
            for half, seen in zip((heads, tails), self.bench.run_all(pairs), strict=True):
                dropped += self._judge_half(half, seen)
        return dropped

    def _judge_half(self, half: Sequence[Quest], seen: Seen) -> int:
        # A row of it that has no canary is one of the others: a certificate sees it beside this one.
        swapped = {check for q in half for check in q.covered}
        covered = {check: q.classes() for q in half for check in q.covered}
        spoilt = [
            check
            for check in self.search.checks
            if check not in swapped and self._passes(check) and not _passed(seen.report.get(check))
        ]
        bad = {
            check: UNSTEADY
            for check, classes in covered.items()
            if not by_assertion(seen.report.get(self.told.get(check, "")), classes)
        }
        dropped = self._give_up(bad)
        for _ in range(_MOST_CULPRITS):
            culprit = self._culprit(spoilt, [q for q in half if q.covered]) if spoilt else None
            if culprit is None:
                break
            dropped += self._give_up(dict.fromkeys(culprit.covered, SPOILS))
            spoilt = self._spoilt(spoilt, half)
        return dropped

    def _culprit(self, spoilt: Sequence[str], quests: Sequence[Quest]) -> Quest | None:
        """Whose edits make these fail? First asked of their own files, which takes less time."""
        self.note("whose canary makes other tests fail", 0, 1)
        paths = sorted({check.partition("::")[0] for check in spoilt})
        near = [q for q in quests if not q.paths.isdisjoint(paths)]
        return self._by_halves(spoilt, near, paths) or self._by_halves(spoilt, quests, ())

    def _by_halves(
        self, spoilt: Sequence[str], suspects: Sequence[Quest], paths: Sequence[str]
    ) -> Quest | None:
        if not self._spoilt(spoilt, suspects, paths):
            return None
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            suspects = half if self._spoilt(spoilt, half, paths) else suspects[len(half) :]
        return suspects[0] if self._spoilt(spoilt, suspects, paths) else None

    def _spoilt(
        self, checks: Sequence[str], quests: Sequence[Quest], paths: Sequence[str] = ()
    ) -> list[str]:
        """Those of the checks that fail with these canaries in their files, or in all of them."""
        if not checks or not quests:
            return []
        seen = self.bench.run(self._edits(quests), self.solution, paths)
        return [c for c in checks if not _passed(seen.report.get(c))]

    def _hold_against_wrong(self, *, first: bool) -> int:
        """What a wrong solution passes, its canary must not."""
        edits, bad = self._edits(), dict[str, str]()
        for number, (name, patch) in enumerate(self.wrong.items()):
            self.note("wrong solutions", number, len(self.wrong))
            pairs: list[tuple[Sequence[Edit], bytes]] = [(edits, patch)]
            if name not in self._real:
                pairs.append(((), patch))
            seen, *real = self.bench.run_all(pairs)
            if real:
                self._real[name] = real[0].report
            found = list(self._forgiven(self._real[name], seen.report, base=not name))
            bad |= dict.fromkeys(found, FORGIVES if name else WITHOUT)
            if first:
                self.forgiven += len(found)
        return self._give_up(bad)

    def _forgiven(self, real: Report, canary: Report, *, base: bool) -> Iterator[str]:
        """base: of the code as it was; what that does, a right solution may do as well as what is asked."""
        told = told_as(self.search.usual, canary)
        for quest in self.search.quests.values():
            for check in quest.covered:
                report = canary.get(told.get(check, ""))
                if not _passed(real.get(check)):
                    if base and _passed(report):
                        yield check
                    continue
                self.mutant_pairs += 1
                if report is None or report.outcome is not Outcome.FAILED:
                    yield check

    def _give_up(self, bad: Mapping[str, str]) -> int:
        self.reasons |= bad
        for quest in self.search.quests.values():
            for check in [c for c in quest.covered if c in bad]:
                del quest.covered[check]
        return len(bad)

    def _passes(self, check: str) -> bool:
        return _passed(self.search.usual.get(check))


def _passed(report: object) -> bool:
    return getattr(report, "outcome", None) is Outcome.PASSED


def _heads(name: str, draw: str) -> bool:
    return bool(hashlib.sha256(f"{draw}\0{name}".encode()).digest()[0] & 1)
