"""What is made of measured values: medians, tables, bounds, and whether something grew.

Nothing here measures, so all of it is unit-tested.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""Subject → measure → milliseconds, one for each round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Something that must hold, and what was found."""

    words: str
    figure: float | None
    """None when it was not measured."""
    limit: float
    unit: str = ""
    at_least: bool = False
    """The limit is the least it may be; else the most."""

    @property
    def holds(self) -> bool | None:
        if self.figure is None:
            return None
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    def as_json(self) -> dict[str, Any]:
        return {
            "words": self.words,
            "figure": None if self.figure is None else round(self.figure, 4),
            "limit": self.limit,
            "unit": self.unit,
            "at_least": self.at_least,
            "holds": self.holds,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One quantity of a long run: what it was early and late, and whether that is more."""

    name: str
    early: float
    late: float
    margin: float

    @property
    def grown(self) -> bool:
        return self.late - self.early > self.margin


def growth(name: str, samples: Sequence[float], *, least: float, share: float = 0.05) -> Growth:
    """Compare the medians of the second quarter and the last one; the first only warms up.

    The margin for noise is the larger of `least` and that share of the early median.
    """
    if len(samples) < 8:
        raise ValueError(f"{len(samples)} samples of {name} say nothing about growth: take 8")
    quarter = len(samples) // 4
    early, late = median(samples[quarter : 2 * quarter]), median(samples[-quarter:])
    return Growth(name=name, early=early, late=late, margin=max(least, share * abs(early)))


def medians(values: Values) -> dict[str, dict[str, float]]:
    return {
        subject: {measure: median(found) for measure, found in measures.items() if found}
        for subject, measures in values.items()
    }


def percentile(found: Sequence[float], percent: int) -> float | None:
    """The least that so many percent do not exceed; None of nothing."""
    ordered = sorted(found)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else None


def middle(found: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    return median(found) if found else None


def quotient(one: float | None, other: float | None) -> float | None:
    """None when either is missing, or there is nothing to divide by."""
    return None if one is None or not other else one / other


def number(value: float | None) -> str:
    """With as many digits as mean something; a dash for what was not measured."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(found: Sequence[float]) -> str:
    """Median, and the best in brackets: what the machine can do when nothing is in the way."""
    return f"{number(median(found))} ({number(min(found))})" if found else "–"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown, with columns that line up: the first to the left, all others to the right."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(head))]

    def shown(line: Sequence[str]) -> str:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        return f"| {' | '.join(cells)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([shown(lines[0]), f"| {' | '.join(rule)} |", *map(shown, lines[1:])])


def times_table(values: Values, measures: Sequence[str], subjects: Sequence[str]) -> str:
    """A row for each measure that anybody has, a column for each subject."""
    there = [s for s in subjects if s in values]
    rows = [
        [measure, *(spread(values[s].get(measure, ())) for s in there)]
        for measure in measures
        if any(values[s].get(measure) for s in there)
    ]
    return table(["ms: median (best)", *there], rows)


def bounds_table(bounds: Iterable[Mapping[str, Any]]) -> str:
    """From bounds as JSON has them."""
    words = {True: "yes", False: "**no**", None: "not measured"}
    rows = [
        [
            b["words"],
            f"{number(b['figure'])} {b['unit']}".strip(),
            f"{'≥' if b['at_least'] else '≤'} {b['limit']:g} {b['unit']}".strip(),
            words[b["holds"]],
        ]
        for b in bounds
    ]
    return table(["must show", "found", "bound", "holds"], rows)


def growth_table(found: Iterable[Growth]) -> str:
    rows = [
        [g.name, f"{g.early:g}", f"{g.late:g}", f"{g.margin:g}", "**grown**" if g.grown else "no"]
        for g in found
    ]
    return table(["quantity", "second quarter", "last quarter", "margin", "grown"], rows)


def broken(bounds: Iterable[Mapping[str, Any]]) -> list[str]:
    """What does not hold. What was not measured is not held against anybody."""
    return [b["words"] for b in bounds if b["holds"] is False]


def replace_section(text: str, name: str, body: str) -> str:
    """Put a new body between `<!-- BEGIN name -->` and `<!-- END name -->`."""
    begin, end = f"<!-- BEGIN {name} -->", f"<!-- END {name} -->"
    before, found, rest = text.partition(begin)
    _, also, after = rest.partition(end)
    if not found or not also:
        raise ValueError(f"there is no {begin} … {end}")
    return f"{before}{begin}\n\n{body.strip()}\n\n{end}{after}"


def write_section(page: Path, name: str, body: str) -> None:
    text = page.read_text(encoding="utf-8")
    page.write_text(replace_section(text, name, body), encoding="utf-8")
