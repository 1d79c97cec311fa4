"""What a task's verdicts rest on beside its tests: canaries, withheld expectations, a plain run."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from sandbox.model.task import STRICT, Digest

Layer = Literal["canary", "withheld", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A literal of the hidden tests, and what stands in its place in the canary."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    path: str
    """Relative to the working directory."""
    line: int
    """The first is 1."""
    column: int
    """In characters; the first is 0."""
    old: str
    """As it is written, on that line. Nothing else is changed."""
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """Another way to make the same checks fail."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    edits: tuple[Edit, ...]
    checks: Mapping[str, str]
    """Check → the id under which this canary reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What has one coin: a test function, as it is or with all of its edits."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    edits: tuple[Edit, ...]
    checks: Mapping[str, str]
    """Check → the id under which its canary reports. The reference solution passes the first and
    fails the second, by an assertion."""
    loose: tuple[str, ...] = ()
    """Checks whose canary is given something else, where nothing that is expected can be changed: a
    wrong solution may pass both. Then the check does not count, and nobody is accused."""
    others: tuple[str, ...] = ()
    """Checks that run with it and have no canary: they count where it is as it is."""
    more: tuple[Canary, ...] = ()
    """Of the same checks. Which one a pair of boxes has is drawn, so that a guess which hangs on the
    text is not as right in the next pair."""

    @property
    def canaries(self) -> tuple[Canary, ...]:
        return Canary(edits=self.edits, checks=self.checks), *self.more

    def canary(self, drawn: Mapping[str, int]) -> Canary:
        """drawn: unit → which of its canaries, the first if it is not named.

        The first is 0; after the last they begin again.
        """
        return self.canaries[drawn.get(self.name, 0) % len(self.canaries)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Canaries:
    """verifiers/<task>/canaries.json."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1] = 1
    bundle: Digest
    """The hidden tests for which they were found."""
    units: tuple[Unit, ...]
    uncovered: Mapping[str, str] = field(default_factory=dict)
    """Check → why it has no canary."""

    def canary_of(self) -> dict[str, str]:
        """Check → the id under which its canary reports."""
        return {check: told for unit in self.units for check, told in unit.checks.items()}

    def unproved(self, scored: Collection[str]) -> set[str]:
        """Those of the scored checks that code in the tests' process can make to pass.

        They have no canary, or share its coin with a check that passed before anything was done.
        """
        coined = [unit.checks.keys() for unit in self.units]
        own = {check for checks in coined if checks <= {*scored} for check in checks}
        return {*scored} - own


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """An assertion that compares with a literal: in the plain run the literal is not there."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    key: str
    path: str
    line: int
    column: int
    """Of the `assert`."""
    end_line: int
    end_column: int
    source: str
    """What is observed: the other side, as it is written."""
    expected: str
    """What the host expects to be told, encoded as the plain runner encodes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """verifiers/<task>/plain.json: which checks a plain script can take, and what it must observe."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1] = 1
    bundle: Digest
    checks: Mapping[str, tuple[str, ...]]
    """Check that passes without the test runner, too → keys that are observed meanwhile."""
    sites: tuple[Site, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    """Check → why a plain script cannot take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Of one task; what it does not have, its verdicts do not rest on."""

    canaries: Canaries | None = None
    withheld: Plain | None = None
    plain: Plain | None = None


BARE = Layers()
