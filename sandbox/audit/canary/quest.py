"""What has been tried of one unit, what worked, and what is to be tried next. No box is needed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sandbox.audit.canary.places import EXPECTED, Group, Literal
from sandbox.audit.canary.propose import Vocabulary, proposals
from sandbox.audit.canary.public import NOTHING, Form
from sandbox.model.layers import Edit

VARIANTS, MORE_VARIANTS = 4, 8
"""Of one literal: for one canary, and for several of them."""
_OF_ONE_RANK = 4
"""Literals of one rank that are tried before those of the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Edits that are tried together, and how little is expected of them."""

    group: Group
    cost: int
    edits: tuple[Edit, ...]
    strict: bool
    """It changes what is expected, and nothing that is given."""


def candidates(
    literals: Iterable[Literal],
    known: Vocabulary,
    *,
    public: Form = NOTHING,
    variants: int = VARIANTS,
) -> dict[Group, list[Candidate]]:
    """For each group, in the order in which they are to be tried.

    public: where the literals stand for everybody; what can be told from it is left out.
    """
    made: dict[Group, list[Candidate]] = {}
    met: dict[tuple[Group, int], int] = {}
    for literal in literals:
        if public.knows(literal, literal.text):
            continue
        count = met[literal.group, literal.rank] = met.get((literal.group, literal.rank), 0) + 1
        late = 3 * ((count - 1) // _OF_ONE_RANK)
        news = [new for new in proposals(literal, known) if not public.knows(literal, new)]
        for number, new in enumerate(news[:variants]):
            made.setdefault(literal.group, []).append(
                Candidate(
                    group=literal.group,
                    cost=2 * literal.rank + 3 * number + late,
                    edits=(_edit(literal, new),),
                    strict=literal.rank == EXPECTED,
                )
            )
    return {group: sorted(found, key=lambda c: c.cost) for group, found in made.items()}


def bundled(groups: Mapping[Group, Sequence[Candidate]]) -> dict[Group, list[Candidate]]:
    """Where nobody knows which check a row is for: the same try of every row, together."""
    made: dict[Group, list[Candidate]] = {(): list(groups.get((), ()))}
    rows = [found for group, found in groups.items() if group]
    for number in range(max(map(len, rows), default=0)):
        here = [found[number] for found in rows if number < len(found)]
        made.setdefault((0, 0), []).append(
            Candidate(
                group=(0, 0),
                cost=max(c.cost for c in here),
                edits=tuple(e for c in here for e in c.edits),
                strict=all(c.strict for c in here),
            )
        )
    return made


@dataclass(slots=True, kw_only=True)
class Quest:
    """The search for the canary of one unit."""

    name: str
    paths: frozenset[str]
    """Files whose tests run with it."""
    checks: dict[str, tuple[Group, ...]]
    """Check → what could be edited for it."""
    queues: dict[Group, list[Candidate]]
    covered: dict[str, Candidate] = field(default_factory=dict)
    mine: tuple[str, ...] = ()
    """Functions that have this coin."""
    tries: int = 0
    _trial: list[Candidate] = field(default_factory=list)

    @property
    def open(self) -> list[str]:
        return [check for check in self.checks if check not in self.covered]

    def kept(self) -> list[Edit]:
        """The edits that worked."""
        return _distinct(e for c in self.covered.values() for e in c.edits)

    def classes(self) -> frozenset[str]:
        """Names that its edits replace."""
        edits = [*self.kept(), *(e for c in self._trial for e in c.edits)]
        return frozenset(e.old.rpartition(".")[2] for e in edits if _is_name(e.old))

    def trial(self) -> list[Edit]:
        """What is to be tried now, together with what worked; empty when nothing is left."""
        if not self._trial:
            self._trial = self._next()
        if not self._trial:
            return []
        return _distinct([*self.kept(), *(e for c in self._trial for e in c.edits)])

    def pending(self) -> bool:
        return bool(self.trial())

    def at_import(self) -> bool:
        """Does the trial change what is read when the file is loaded?"""
        return any(c.group for c in self._trial)

    def learn(self, caught: Mapping[str, bool]) -> None:
        """caught: check → did its canary fail by an assertion?"""
        self.tries += 1
        if all(caught.get(check, False) for check in self.covered):
            for check in self.open:
                if not caught.get(check, False):
                    continue
                for candidate in self._trial:
                    if candidate.group in self.checks[check]:
                        self.covered[check] = candidate
                        break
        self._trial = []

    def again(self, queues: Mapping[Group, Sequence[Candidate]], used: Collection[Edit]) -> "Quest":
        """For another canary of what is covered: of these candidates, with other edits than `used`.

        Where one changed only what is expected, so has another.
        """
        strict = {g for c, found in self.covered.items() if found.strict for g in self.checks[c]}
        before = {*used}
        left = {
            group: [
                c for c in queue if (c.strict or group not in strict) and before.isdisjoint(c.edits)
            ]
            for group, queue in queues.items()
        }
        checks = {check: self.checks[check] for check in self.covered}
        return replace(self, checks=checks, queues=left, covered={}, _trial=[])

    def fill(self, first: "Quest") -> None:
        """What nothing else was found for keeps the edits of the first canary, if they fit in."""
        taken = {_place(e) for e in self.kept()}
        for check in self.open:
            found = first.covered[check]
            if taken.isdisjoint(map(_place, found.edits)):
                self.covered[check] = found

    def reject(self, *, altogether: bool = False) -> None:
        """It broke more than a test. altogether: the same literals are not tried again."""
        if altogether:
            places = {_place(e) for c in self._trial for e in c.edits}
            self.queues = {
                group: [c for c in queue if places.isdisjoint(map(_place, c.edits))]
                for group, queue in self.queues.items()
            }
        self.learn({})

    def put_back(self) -> None:
        """It has to wait: others broke the file."""
        for candidate in self._trial:
            self.queues[candidate.group].insert(0, candidate)
        self._trial = []

    def _next(self) -> list[Candidate]:
        if not self.open:
            return []
        taken = {_place(e) for e in self.kept()}
        heads = {}
        for group in {g for check in self.open for g in self.checks[check]}:
            queue = self.queues.get(group, [])
            while queue and any(_place(e) in taken for e in queue[0].edits):
                queue.pop(0)
            if queue:
                heads[group] = queue[0]
        return [self.queues[g].pop(0) for g in self._chosen(heads)]

    def _chosen(self, heads: Mapping[Group, Candidate]) -> list[Group]:
        """The body for all checks, or a row for each."""
        rows: dict[str, Group] = {}
        for check in self.open:
            own = [g for g in self.checks[check] if g and g in heads]
            if own:
                rows[check] = min(own, key=lambda g: (heads[g].cost, g))
        cheapest = min((heads[g].cost for g in rows.values()), default=None)
        if () in heads and (cheapest is None or heads[()].cost <= cheapest):
            return [()]
        return sorted(set(rows.values()))


def joined(name: str, quests: Sequence[Quest], more: Sequence[Candidate], group: Group) -> Quest:
    """One coin for all of them, with edits of something that they share."""
    checks: dict[str, tuple[Group, ...]] = {c: (group,) for q in quests for c in q.checks}
    return Quest(
        name=name,
        paths=frozenset(p for q in quests for p in q.paths),
        checks=checks,
        queues={group: list(more)},
        covered={check: found for q in quests for check, found in q.covered.items()},
        mine=tuple(f for q in quests for f in q.mine),
    )


def _edit(literal: Literal, new: str) -> Edit:
    return Edit(
        path=literal.path, line=literal.line, column=literal.column, old=literal.text, new=new
    )


def _is_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _place(edit: Edit) -> tuple[str, int, int]:
    return edit.path, edit.line, edit.column


def _distinct(edits: Iterable[Edit]) -> list[Edit]:
    return list(_without_doubles(edits))


def _without_doubles(edits: Iterable[Edit]) -> Iterator[Edit]:
    seen: set[tuple[str, int, int]] = set()
    for edit in edits:
        place = _place(edit)
        if place not in seen:
            seen.add(place)
            yield edit
