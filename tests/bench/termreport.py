"""What is said about a finished run of `terminal`: from its JSON alone."""

from collections.abc import Iterator
from typing import Any

from tests.bench import flood, latency, ours
from tests.bench.figures import Bound, bounds_table, middle, number, percentile, quotient, table
from tests.bench.machine import machine_line

TIMES_BARE = {"embedded": 5, "docker": 8}
OF_REX = 150


def bounds(found: dict[str, Any]) -> list[Bound]:
    """Of the sections that were measured, and of all. Ratios are of this run's medians."""
    parts = {"latency": _latency, "throughput": _throughput, "many": _many, "input": _input}
    told = [bound for part, made in parts.items() if part in found for bound in made(found[part])]
    return [*told, Bound(words="left over in the end", figure=len(found["left"]), limit=0)]


def _latency(found: dict[str, Any]) -> Iterator[Bound]:
    medians = {name: middle(ms) for name, ms in found["ms"].items()}
    bare, rex = medians.get(latency.BARE), medians.get(latency.REX)
    for kind in ours.KINDS:
        for mode in ours.MODES:
            name = f"{kind}, {mode}"
            mine, limit = medians.get(name), TIMES_BARE[kind]
            words = f"`true`, {name}, to a bare PTY"
            yield Bound(words=words, figure=quotient(mine, bare), limit=limit, unit="×")
            words, figure = f"`true`, SWE-ReX to {name}", quotient(rex, mine)
            yield Bound(words=words, figure=figure, limit=OF_REX, unit="×", at_least=True)


def _throughput(found: dict[str, Any]) -> Iterator[Bound]:
    for name, subjects in found["floods"].items():
        bare, mine = _seconds(subjects, flood.BARE), _seconds(subjects, "embedded, tty")
        words, speed = f"{name}: tty, speed to a bare loop's", quotient(bare, mine)
        yield Bound(words=words, figure=speed, limit=0.5, unit="×", at_least=True)
    runs = [
        one
        for subjects in found["floods"].values()
        for subject, ones in subjects.items()
        if subject != flood.BARE
        for one in ones
    ]
    grown = max((one["grown_mib"] for one in runs), default=None)
    yield Bound(words="much output: growth of our memory", figure=grown, limit=32, unit="MiB")
    # What was left out is told in words of its own, and is shown beside both parts.
    wide = sum(one["shown"] > ours.SHOWN for one in runs) if runs else None
    yield Bound(words="much output: observations over their limit", figure=wide, limit=0)
    wrong = sum(one["bytes"] != one["expected"] for one in runs) if runs else None
    yield Bound(words="much output: bytes counted wrong", figure=wrong, limit=0)


def _many(found: dict[str, Any]) -> Iterator[Bound]:
    alive = found.get("alive", {})
    if alive:
        words, wanted = f"{alive['wanted']} terminals at once", alive["wanted"]
        running, answered = alive["running"], alive["answered"]
        yield Bound(words=f"{words}: running", figure=running, limit=wanted, at_least=True)
        words_answered = f"{words}: answered when interrupted"
        yield Bound(words=words_answered, figure=answered, limit=wanted, at_least=True)
        mib = alive["mib_per_terminal"]
        yield Bound(words=f"{words}: our memory for each", figure=mib, limit=1, unit="MiB")
    for mode, one in found["rates"].get("embedded", {}).items():
        words = f"{one['sessions']} sessions together, embedded, {mode}: commands/s"
        yield Bound(words=words, figure=one["per_second"], limit=1000, unit="/s", at_least=True)


def _input(found: dict[str, Any]) -> Iterator[Bound]:
    for kind, one in found["kinds"].items():
        words = f"{one['runs']} runs that wait for nobody, {kind}: false alarms"
        yield Bound(words=words, figure=len(one["alarms"]), limit=0)
        never = one["cat_ms"].count(None)
        yield Bound(words=f"`cat`, {kind}: not seen to wait", figure=never, limit=0)


def tables(found: dict[str, Any]) -> str:
    """All of it, in Markdown: what is printed, and what the documentation quotes."""
    quick = " **Quick run: only to show that it works.**" if found["options"]["quick"] else ""
    parts = [f"{machine_line(found['machine'])}.{quick}"]
    if "latency" in found:
        parts.append(_latency_table(found["latency"]))
    if "throughput" in found:
        parts += [_throughput_table(found["throughput"]), _memory_line(found["throughput"])]
    if "many" in found:
        parts += [_alive_line(found["many"]), _rates_table(found["many"])]
    if "input" in found:
        parts += [_input_table(found["input"])]
    parts += [bounds_table(found["bounds"]), _left_out(found)]
    return "\n\n".join(part for part in parts if part)


def _latency_table(found: dict[str, Any]) -> str:
    bare, rex = (middle(found["ms"].get(name, ())) for name in (latency.BARE, latency.REX))
    rows = [
        [
            f"{name} {found['versions'].get(name, '')}".removesuffix(" itself").strip(),
            f"{len(ms)}",
            number(middle(ms)),
            number(percentile(ms, 99)),
            number(quotient(middle(ms), bare)),
            number(quotient(rex, middle(ms))),
        ]
        for name, ms in found["ms"].items()
    ]
    head = ["`true`, ms", "commands", "median", "p99", "× bare PTY", "SWE-ReX ×"]
    return table(head, rows)


def _throughput_table(found: dict[str, Any]) -> str:
    names = dict.fromkeys(name for subjects in found["floods"].values() for name in subjects)
    if not names:
        return ""
    shown = [flood.BARE, *(name for name in sorted(names) if name != flood.BARE)]
    rows = []
    for name, subjects in found["floods"].items():
        bare = _seconds(subjects, flood.BARE)
        rows.append([name, *(_speed(_seconds(subjects, subject), bare) for subject in shown)])
    return table(["seconds (speed to bare)", *shown], rows)


def _speed(seconds: float | None, bare: float | None) -> str:
    return "–" if seconds is None else f"{number(seconds)} ({number(quotient(bare, seconds))} ×)"


def _seconds(subjects: dict[str, Any], name: str) -> float | None:
    return middle([one["seconds"] for one in subjects.get(name, ())])


def _memory_line(found: dict[str, Any]) -> str:
    grown = [
        (one["grown_mib"], f"{subject}, {name}")
        for name, subjects in found["floods"].items()
        for subject, ones in subjects.items()
        for one in ones
        if "grown_mib" in one
    ]
    if not grown:
        return ""
    most, where = max(grown)
    return f"Our memory grew by {number(most)} MiB at most ({where})."


def _alive_line(found: dict[str, Any]) -> str:
    alive = found.get("alive")
    if not alive:
        return ""
    words = (
        f"{alive['wanted']} terminals in {alive['boxes']} boxes, a program started in each within"
        f" {alive['open_seconds']} s: {alive['running']} said that a program runs,"
        f" {alive['answered']} answered after they were interrupted; {alive['mib_per_terminal']}"
        " MiB of ours for each."
    )
    return "\n\n".join([words, *(f"- {error}" for error in alive["errors"])])


def _rates_table(found: dict[str, Any]) -> str:
    rows = [
        [
            f"{kind}, {mode}",
            f"{one['sessions']}",
            f"{one['commands']}",
            number(one["per_second"]),
            number(middle(one["ms"])),
            number(percentile(one["ms"], 99)),
        ]
        for kind, modes in found["rates"].items()
        for mode, one in modes.items()
    ]
    head = ["together", "sessions", "commands", "commands/s", "median ms", "p99 ms"]
    return table(head, rows) if rows else ""


def _input_table(found: dict[str, Any]) -> str:
    rows = []
    for kind, one in found["kinds"].items():
        times = [ms for ms in one["cat_ms"] if ms is not None]
        cells = [number(middle(times)), number(percentile(times, 99))]
        rows.append([kind, f"{one['runs']}", f"{len(one['alarms'])}", *cells])
    head = ["awaiting input", "runs", "false alarms", "`cat` → told, median ms", "p99 ms"]
    alarms = [f"- {kind}: {a}" for kind, one in found["kinds"].items() for a in one["alarms"][:10]]
    failed = [f"- {kind}: {f}" for kind, one in found["kinds"].items() for f in one["failed"]]
    return "\n\n".join([table(head, rows), *alarms, *failed]) if rows else ""


def _left_out(found: dict[str, Any]) -> str:
    lines = list(
        dict.fromkeys(
            f"- {name}: {why}"
            for part in ("latency", "throughput", "many", "input")
            for name, why in found.get(part, {}).get("left_out", {}).items()
        )
    )
    lines += [f"- left over: {left}" for left in found["left"]]
    return "\n".join(["Left out:", "", *lines]) if lines else ""
