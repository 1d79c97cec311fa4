"""Which hidden tests are canaries in which box, and which canaries. Pure."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sandbox.formats.digest import Entry
from sandbox.grading.variants import canaried
from sandbox.model.conditions import Conditions
from sandbox.model.layers import Canaries, Unit
from sandbox.model.record import Submission
from sandbox.model.task import TaskSpec
from sandbox.runtime.supplies import Supplies


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Of one pair of boxes."""

    swapped: tuple[str, ...] = ()
    """Units whose canaries go into the first box."""
    drawn: Mapping[str, int] = field(default_factory=dict)
    """Unit that has several canaries → which of them."""

    def variants(self, tests: Sequence[Entry], canaries: Canaries | None) -> list[Sequence[Entry]]:
        """The hidden tests of each box; there is only one where nothing has a canary."""
        if canaries is None:
            return [tests]
        first = frozenset(self.swapped)
        second = frozenset(unit.name for unit in canaries.units) - first
        return [canaried(tests, canaries, names, self.drawn) for names in (first, second)]


@dataclass(frozen=True, slots=True)
class Coins:
    """For each unit and pair of boxes, the same whenever the same is verified on this machine."""

    secret: bytes
    about: str

    def draw(self, canaries: Canaries | None, pair: int = 0) -> Draw:
        units = canaries.units if canaries else ()
        of_pair = f"\0{pair}" if pair else ""
        return Draw(
            swapped=tuple(u.name for u in units if self._digest(u, of_pair)[0] & 1),
            drawn={u.name: self._which(u, pair) for u in units if u.more},
        )

    def _which(self, unit: Unit, pair: int) -> int:
        """One after another in an order of its own: as many pairs, as many canaries."""
        count = len(unit.canaries)
        order = sorted(range(count), key=lambda n: self._digest(unit, f"\0canary {n}"))
        return order[pair % count]

    def _digest(self, unit: Unit, more: str) -> bytes:
        message = f"{self.about}\0{unit.name}{more}".encode("utf-8", "surrogateescape")
        return hmac.digest(self.secret, message, "sha256")


def coins_of(
    task: TaskSpec,
    submission: Submission,
    supplies: Supplies,
    attempt: int,
    conditions: Conditions,
) -> Coins:
    """Of the patch itself, so that trying the same again is no second chance."""
    if conditions.layers == "mixed":
        # Of certificates: what they say has to be the same on every machine.
        return Coins(task.digest.encode(), conditions.draw)
    patch = hashlib.sha256(submission.patch).hexdigest()
    return Coins(supplies.secret, f"{task.digest}\0{attempt}\0{patch}")
