"""What is said about a finished run of `freeze`: from its JSON alone."""

from collections.abc import Iterator
from typing import Any

from tests.bench.figures import Bound, bounds_table, middle, quotient, spread, table
from tests.bench.machine import machine_line

PLAIN, TICKING = "the machine's clock", "a clock of its own"
HOST = "no box"
C_READS = "a look at the clock, C, ns"
PYTHON_READS = "a look at the clock, Python, ns"
STAT = "a stat, ns"
CONFIGURE = "a configure script, ms"
BUILD = "make -j2 of 60 C files, ms"
TESTS = "the hidden tests of click-8.1.3, ms"
START = "create → first command, ms"


def cpu(what: str) -> str:
    """The same in processor time."""
    return f"{what.removesuffix(', ms')}, CPU ms"


MEASURES = (
    C_READS, PYTHON_READS, STAT, CONFIGURE, cpu(CONFIGURE), BUILD, cpu(BUILD), TESTS, cpu(TESTS), START
)  # fmt: skip
_RATIOS = {C_READS: 2.0, PYTHON_READS: 2.0, CONFIGURE: 1.10, BUILD: 1.10, TESTS: 1.03}
_STAT_MICROSECONDS, _START_MILLISECONDS = 16.0, 3.0


def bounds(found: dict[str, Any]) -> list[Bound]:
    return [bound for kind in found["values"] for bound in _of(kind, found["values"][kind])]


def _of(kind: str, values: dict[str, Any]) -> Iterator[Bound]:
    for what, limit in _RATIOS.items():
        if what in values:
            plain, ticking = _middles(values[what])
            words = f"{kind}: {what.rpartition(', ')[0]}, to the machine's clock"
            yield Bound(words=words, figure=quotient(ticking, plain), limit=limit, unit="×")
    if STAT in values:
        yield _more(f"{kind}: a stat, more", values[STAT], _STAT_MICROSECONDS, "µs", 1000)
    if START in values:
        words = f"{kind}: create → first command, more"
        yield _more(words, values[START], _START_MILLISECONDS, "ms", 1)


def _more(words: str, values: dict[str, list[float]], limit: float, unit: str, by: float) -> Bound:
    plain, ticking = _middles(values)
    figure = None if plain is None or ticking is None else max(0.0, ticking - plain) / by
    return Bound(words=words, figure=figure, limit=limit, unit=unit)


def _middles(values: dict[str, list[float]]) -> tuple[float | None, float | None]:
    return middle(values.get(PLAIN, ())), middle(values.get(TICKING, ()))


def tables(found: dict[str, Any]) -> str:
    quick = " **Quick run: only to show that it works.**" if found["options"]["quick"] else ""
    parts = [
        f"{machine_line(found['machine'])}. {found['options']['rounds']} rounds.{quick}",
        _times(found["values"]),
        bounds_table(found["bounds"]),
        _left_out(found),
    ]
    return "\n\n".join(part for part in parts if part)


def _times(values: dict[str, Any]) -> str:
    rows = [
        [f"{kind}: {what}", spread(values[kind][what][PLAIN]), spread(values[kind][what][TICKING])]
        for kind in values
        for what in MEASURES
        if what in values[kind]
    ]
    return table(["median (best)", PLAIN, TICKING], rows)


def _left_out(found: dict[str, Any]) -> str:
    lines = [f"- {name}: {why}" for name, why in found["left_out"].items()]
    return "\n".join(["Left out:", "", *lines]) if lines else ""
