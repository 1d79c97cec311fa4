"""Trying edits, one of every unit at the same time, until each check has a canary or none is left."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from sandbox.audit.canary.datafiles import data_literals
from sandbox.audit.canary.items import Report, by_head, caught, row_groups, told_as
from sandbox.audit.canary.literals import Function, TestFile, resolve
from sandbox.audit.canary.places import Group, Literal
from sandbox.audit.canary.propose import Vocabulary, vocabulary
from sandbox.audit.canary.public import Form, of_several
from sandbox.audit.canary.quest import (
    MORE_VARIANTS,
    Candidate,
    Quest,
    bundled,
    candidates,
    joined,
)
from sandbox.audit.canary.shared import Shared, shared
from sandbox.formats.digest import Entry
from sandbox.model.layers import Edit
from sandbox.model.verdict import Ran, Seen, function_of

MOST_ROUNDS, MOST_SHARED_ROUNDS = 12, 4
_MOST_NAMED = 200
"""Functions that are asked for by name; more of them, by their files."""
_MOST_CUT_SHORT = 40
_IN_VAIN = 3
"""Rounds without a gain, after which it is given up."""
_SHARED_TURNS = 2
_ENOUGH = 0.93
"""Share of checks after which the rest is not worth a run of the suite each."""


class Run(Protocol):
    """The suite, edited, in a box of its own."""

    def __call__(self, edits: Sequence[Edit], *, paths: Sequence[str] = ()) -> Seen:
        """With the reference solution; `paths`: of these files or functions only."""


@dataclass(slots=True)
class Search:
    """`usual`: what the reference solution shows, unedited, in order; `checks`: what is asked about."""

    files: dict[str, TestFile]
    entries: Sequence[Entry]
    known: Vocabulary
    usual: Report
    checks: Sequence[str]
    run: Run
    note: Callable[[str, int, int], None]
    scored: Collection[str] = ()
    """Checks that may bring a reward: what is public of them gives no canary."""
    public: Mapping[str, Form] = field(default_factory=dict)
    """See public.public_forms."""
    only: Collection[str] = ()
    """Files that may be edited; empty: all. What uses the others is not seen to fail."""
    enough: float = _ENOUGH
    """Share of checks after which it ends."""
    rounds: int = 0
    quests: dict[str, Quest] = field(default_factory=dict)
    """Name → unit."""
    _batches: dict[str, list[list[str]]] = field(default_factory=dict)
    """File that did not load → which of its units are tried together, one batch at a time."""

    def prepare(self) -> None:
        """One unit for each function."""
        wanted = set(self.checks)
        items = by_head(self.usual)
        found: dict[str, tuple[Function, dict[str, tuple[Group, ...]]]] = {}
        for name, mine in items.items():
            function = resolve(self.files, name)
            if function is None or not wanted & set(mine):
                continue
            groups = row_groups(function, mine)
            _, checks = found.setdefault(function.id, (function, {}))
            checks.update({check: groups[check] for check in mine if check in wanted})
        for name, (function, checks) in found.items():
            queues = self._candidates(function.literals, checks, function.id)
            if any((0, 0) in groups and len(groups) == 2 for groups in checks.values()):
                queues = bundled(queues) if _unclear(function, checks, items) else queues
            self.quests[name] = Quest(
                name=name,
                paths=frozenset(check.partition("::")[0] for check in checks),
                checks=checks,
                queues=queues,
                mine=(name,),
            )

    def _candidates(
        self,
        literals: Iterable[Literal],
        checks: Iterable[str],
        *holders: str,
        known: Vocabulary | None = None,
    ) -> dict[Group, list[Candidate]]:
        known = known or self.known
        literals = [x for x in literals if not self.only or x.path in self.only]
        if {*self.scored}.isdisjoint(checks):
            return candidates(literals, known)
        public = of_several(self.public, holders)
        return candidates(literals, known, public=public, variants=MORE_VARIANTS)

    def try_functions(self) -> None:
        self._rounds(MOST_ROUNDS, lambda: list(self.quests.values()))

    def try_data(self) -> None:
        """Files that a row is named after."""
        found = data_literals(self.entries, [c for q in self.quests.values() for c in q.open])
        known = vocabulary(x for literals in found.values() for x in literals)
        owner: dict[str, str] = {}
        for quest in self.quests.values():
            groups: dict[frozenset[str], Group] = {}
            for check in quest.open:
                # What another unit edits has another coin.
                mine = [
                    x for x in found.get(check, ()) if owner.get(x.path, quest.name) == quest.name
                ]
                files = frozenset(x.path for x in mine)
                if not files:
                    continue
                owner |= dict.fromkeys(files, quest.name)
                if files not in groups:
                    group = groups[files] = (-1, len(groups))
                    made = self._candidates(mine, [check], *files, known=known).get((), [])
                    quest.queues[group] = [_moved(c, group) for c in made]
                quest.checks[check] = (*quest.checks[check], groups[files])
        self._rounds(MOST_ROUNDS, lambda: list(self.quests.values()))

    def try_shared(self) -> None:
        """Tables, helpers and fixtures that several functions use: one coin for all of these."""
        need = [name for q in self.quests.values() if q.open for name in q.mine]
        functions = {
            name: found
            for q in self.quests.values()
            for name in q.mine
            if (found := resolve(self.files, name))
        }
        left = shared(self.files, functions, need)
        for _ in range(_SHARED_TURNS):
            tried, left = self._apart(left)
            before = {q.name: len(q.covered) for q in tried}
            self._rounds(MOST_SHARED_ROUNDS, partial(list[Quest], tried))
            for quest in tried:
                if len(quest.covered) > before[quest.name]:
                    self._put_together(quest)

    def _apart(self, left: Sequence[Shared]) -> tuple[list[Quest], list[Shared]]:
        """As many as have no function in common, and those that have to wait."""
        busy: set[str] = set()
        tried: list[Quest] = []
        waiting: list[Shared] = []
        for holder in left:
            mine = {q.name for q in self.quests.values() if set(holder.users) & set(q.mine)}
            if busy & mine:
                waiting.append(holder)
                continue
            quests = [self.quests[name] for name in sorted(mine)]
            checks = [check for q in quests for check in q.checks]
            made = self._candidates(holder.literals, checks, holder.name).get((), [])
            if made and any(q.open for q in quests):
                busy |= mine
                group = (-2, 0)
                tried.append(joined(holder.name, quests, [_moved(c, group) for c in made], group))
        return tried, waiting

    def _put_together(self, quest: Quest) -> None:
        """What was found of something shared: those that share it have one coin from now on."""
        for name in [n for n, q in self.quests.items() if set(q.mine) <= set(quest.mine)]:
            del self.quests[name]
        self.quests[quest.name] = quest

    def _rounds(self, most: int, quests: Callable[[], list[Quest]]) -> None:
        best, vain, whole = -1, 0, 0
        for _ in range(_MOST_CUT_SHORT + most):
            pending = [q for q in quests() if q.pending()]
            if not pending or vain >= _IN_VAIN or whole >= most or self._enough():
                return
            if not self._round(self._batch(pending)):
                continue
            whole += 1
            now = sum(len(q.covered) for q in quests())
            best, vain = (now, 0) if now > best else (best, vain + 1)

    def _enough(self) -> bool:
        covered = sum(len(q.covered) for q in self.quests.values())
        return covered >= self.enough * sum(len(q.checks) for q in self.quests.values())

    def _batch(self, pending: Sequence[Quest]) -> list[Quest]:
        """Of a file that could not be loaded, some at a time."""
        names = {q.name for q in pending}
        chosen = list(pending)
        for path, batches in list(self._batches.items()):
            while batches and not names & set(batches[0]):
                batches.pop(0)
            if not batches:
                del self._batches[path]
                continue
            now = set(batches[0])
            chosen = [q for q in chosen if path not in q.paths or q.name in now]
        return chosen

    def _round(self, quests: Sequence[Quest]) -> bool:
        """Did it come to its end, with every file loaded?"""
        self.rounds += 1
        paths = sorted({p for q in quests for p in q.paths})
        edits = {q.name: q.trial() for q in quests}
        everything = list(self.quests.values())
        total = sum(len(q.checks) for q in everything)
        covered = sum(len(q.covered) for q in everything)
        self.note(f"round {self.rounds}: {covered} of {total} checks", covered, total)
        seen, asked = self._run([e for found in edits.values() for e in found], quests)
        missed = not_reached(seen, [i for i in self.usual if asked(i)])
        told = {name.partition("::")[0] for name in seen.report}
        broken = [p for p in paths if p not in told]
        for path in broken if seen.ran is Ran.FINISHED else ():
            self._split(path, [q for q in quests if path in q.paths])
        ids = told_as(self.usual, seen.report)
        for quest in quests:
            if not quest.paths.isdisjoint(broken) and seen.ran is Ran.FINISHED:
                continue
            if missed and missed[0] in quest.checks:
                quest.reject(altogether=True)
            elif missed and not set(quest.checks).isdisjoint(missed):
                quest.put_back()
            else:
                mine = {check: ids[check] for check in quest.checks if check in ids}
                quest.learn(caught(mine, seen.report, quest.classes()))
        return not missed and not broken

    def _run(
        self, edits: Sequence[Edit], quests: Sequence[Quest]
    ) -> tuple[Seen, Callable[[str], bool]]:
        """What was seen, and whether an item was asked for."""
        heads = {function_of(check) for q in quests for check in q.checks}
        if len(heads) <= _MOST_NAMED:
            seen = self.run(edits, paths=sorted(heads))
            if seen.report or seen.ran is not Ran.FINISHED:
                return seen, lambda item: function_of(item) in heads
            # A file that cannot be loaded has none of those names, and then nothing is run.
        paths = sorted({name.partition("::")[0] for name in heads})
        seen = self.run(edits, paths=paths)
        return seen, lambda item: item.partition("::")[0] in paths

    def _split(self, path: str, quests: Sequence[Quest]) -> None:
        """One of them is to blame: halves next time, or it alone."""
        batches = self._batches.setdefault(path, [])
        if batches:
            batches.pop(0)
        suspects = [q for q in quests if q.at_import()] or list(quests)
        if len(suspects) == 1:
            suspects[0].reject()
            for quest in quests:
                if quest is not suspects[0]:
                    quest.put_back()
        else:
            half = len(suspects) // 2
            batches[:0] = [[q.name for q in suspects[:half]], [q.name for q in suspects[half:]]]
            for quest in quests:
                quest.put_back()


def not_reached(seen: Seen, usual: Sequence[str]) -> list[str]:
    """Where the run was cut short: the items that have not reported, the one that ended it first."""
    return [] if seen.ran is Ran.FINISHED else unreported(seen, usual)


def unreported(seen: Seen, usual: Sequence[str]) -> list[str]:
    """Rows may have other ids now, so a function's items are counted."""
    told = by_head(seen.report)
    return [
        item for name, items in by_head(usual).items() for item in items[len(told.get(name, ())) :]
    ]


def _unclear(
    function: Function,
    checks: Mapping[str, tuple[Group, ...]],
    items: Mapping[str, list[str]],
) -> bool:
    count = 1
    for rows in function.shape:
        count *= rows
    heads = {*map(function_of, checks)}
    return any(len(items[h]) != count for h in heads)


def _moved(candidate: Candidate, group: Group) -> Candidate:
    return Candidate(group=group, cost=candidate.cost + 4, edits=candidate.edits, strict=False)
