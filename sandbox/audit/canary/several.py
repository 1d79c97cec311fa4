"""More canaries of what may bring a reward, so that pairs of boxes need not have the same one."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from sandbox.audit.canary.admit import Admission
from sandbox.audit.canary.places import Group
from sandbox.audit.canary.quest import Candidate, Quest
from sandbox.model.layers import Canary, Edit

MORE = 5
"""As many as pairs of boxes in which a reward is won again that rests on very few units."""
_TURNS = MORE + 2
"""Some that are found are no good."""


@dataclass(slots=True)
class _Unit:
    """What has one canary, and gets others."""

    first: Quest
    queues: Mapping[Group, list[Candidate]]
    used: list[Edit]
    found: list[Canary] = field(default_factory=list)

    def wants(self) -> bool:
        return len(self.found) < MORE and any(self.queues.values())

    def learn(self, quest: Quest, told: Mapping[str, str]) -> None:
        """quest: with what was admitted."""
        self.queues = quest.queues
        edits = quest.kept()
        whole = quest.covered.keys() == self.first.covered.keys()
        if whole and not {*edits} <= {*self.used}:
            checks = {check: told[check] for check in quest.checks}
            self.used += edits
            self.found.append(Canary(edits=in_order(edits), checks=checks))


def several(first: Admission, scored: Collection[str]) -> dict[str, tuple[Canary, ...]]:
    """Name of a unit of scored checks → its further canaries. first: has admitted the first ones.

    The others are held against chance and against wrong solutions, as those are.
    """
    units = {
        name: _Unit(quest, quest.queues, quest.kept())
        for name, quest in first.search.quests.items()
        if not {*scored}.isdisjoint(quest.covered)
    }
    for turn in range(_TURNS):
        wanted = {name: unit for name, unit in units.items() if unit.wants()}
        if not wanted:
            break
        first.note("further canaries", turn, _TURNS)
        made = _admitted(first, wanted)
        for name, unit in wanted.items():
            unit.learn(made.search.quests[name], made.told)
    return {name: tuple(unit.found) for name, unit in units.items()}


def _admitted(first: Admission, units: Mapping[str, _Unit]) -> Admission:
    """One more canary for each, as far as there is one."""
    quests = {name: unit.first.again(unit.queues, unit.used) for name, unit in units.items()}
    search = replace(first.search, quests=quests, enough=1.0)
    made = replace(first, search=search, reasons={}, told={})
    search.try_functions()
    _fill(quests, units)
    if any(quest.covered for quest in quests.values()):
        made.admit()
        if _fill(quests, units):
            made.admit()
    return made


def _fill(quests: Mapping[str, Quest], units: Mapping[str, _Unit]) -> bool:
    """Rows without another canary keep their first one, beside those that have one."""
    before = sum(len(quest.covered) for quest in quests.values())
    for name, quest in quests.items():
        if quest.covered:
            quest.fill(units[name].first)
    return sum(len(quest.covered) for quest in quests.values()) > before


def in_order(edits: Collection[Edit]) -> tuple[Edit, ...]:
    return tuple(sorted(edits, key=lambda e: (e.path, e.line, e.column)))
