"""What is said about a finished run of `boxes`: from its JSON alone."""

from collections.abc import Iterator
from statistics import median
from typing import Any

from tests.bench import clock as m
from tests.bench.figures import (
    Bound,
    bounds_table,
    medians,
    number,
    quotient,
    spread,
    table,
    times_table,
)
from tests.bench.machine import machine_line

EMBEDDED, POOLED, DOCKER = "embedded", "embedded, warm pool", "docker"
SDK, RUN, RAW = "Docker SDK", "docker run", "raw limit"
SUBJECTS = (
    EMBEDDED, POOLED, "embedded, 4th in a row", DOCKER, SDK, RUN, "bubblewrap",
    "bubblewrap, root read-only", RAW, "raw limit, mapped",
)  # fmt: skip
IMAGE_MARGIN = 1.25
"""How much slower the big image may seem before we say that its size matters."""


def bounds(found: dict[str, Any]) -> list[Bound]:
    """Every bound on boxes that this program can tell about. Ratios are of this run's medians."""
    return [*_embedded(found), *_pooled(found), *_at_rest(found), *_docker(found)]


def _get(found: dict[str, Any], subject: str, measure: str) -> float | None:
    return medians(found["ms"]).get(subject, {}).get(measure)


def _embedded(found: dict[str, Any]) -> Iterator[Bound]:
    first = _get(found, EMBEDDED, m.FIRST)
    sdk, raw = _get(found, SDK, m.FIRST), _get(found, RAW, m.FIRST)
    command, theirs = _get(found, EMBEDDED, m.EXEC), _get(found, SDK, m.EXEC)
    yield _most("embedded: create → first command, of the Docker SDK's", quotient(first, sdk), 0.05)
    yield _most("embedded: create → first command, of the raw limit", quotient(first, raw), 3, "×")
    yield _most("embedded: create → first command", first, 25, "ms")
    yield _most("embedded: a further command, of the Docker SDK's", quotient(command, theirs), 0.04)
    yield _most("embedded: reset", _get(found, EMBEDDED, m.RESET), 20, "ms")
    yield _most("embedded: destroy", _get(found, EMBEDDED, m.DESTROY), 10, "ms")
    yield _most("embedded: fork, 200 changed files", _get(found, EMBEDDED, m.FORK), 200, "ms")
    yield _most("embedded: changes, 200 changed files", _get(found, EMBEDDED, m.CHANGES), 20, "ms")


def _pooled(found: dict[str, Any]) -> Iterator[Bound]:
    words = "embedded, warm pool: create → first command"
    yield _most(words, _get(found, POOLED, m.FIRST), 5, "ms")
    yield _most("embedded, warm pool: reset", _get(found, POOLED, m.RESET), 5, "ms")


def _at_rest(found: dict[str, Any]) -> Iterator[Bound]:
    rate = found["throughput"].get(EMBEDDED, {}).get("32", {}).get("per_second")
    words = "embedded: cycles/s at 32 concurrent"
    yield Bound(words=words, figure=rate, limit=25, unit="/s", at_least=True)
    idle = found["idle"].get(EMBEDDED, {})
    memory, disk = idle.get("pss_kib_per_box"), idle.get("disk_kib_per_box")
    yield _most("embedded: memory of an idle box (PSS)", quotient(memory, 1024), 2, "MiB")
    yield _most("embedded: disk of an idle box", disk, 64, "KiB")
    sizes = [median(ms) for ms in found["images"].get("ms", {}).values()]
    ratio = quotient(sizes[1], sizes[0]) if len(sizes) == 2 else None
    yield _most("embedded: first command, big image to small", ratio, IMAGE_MARGIN, "×")


def _docker(found: dict[str, Any]) -> Iterator[Bound]:
    created, run = _get(found, DOCKER, m.CREATE), _get(found, RUN, m.LIFE)
    yield _most("docker: a command in a running box", _get(found, DOCKER, m.EXEC), 3, "ms")
    yield _most("docker: create, of plain `docker run`", quotient(created, run), 1.1, "×")


def _most(words: str, figure: float | None, limit: float, unit: str = "") -> Bound:
    return Bound(words=words, figure=figure, limit=limit, unit=unit)


def tables(found: dict[str, Any]) -> str:
    """All of it, in Markdown: what is printed, and what the documentation quotes."""
    quick = " **Quick run: only to show that it works.**" if found["options"]["quick"] else ""
    parts = [
        f"{machine_line(found['machine'])}. {found['options']['rounds']} rounds.{quick}",
        times_table(found["ms"], m.MEASURES, SUBJECTS),
        _throughput(found["throughput"]),
        _idle(found["idle"]),
        _images(found["images"]),
        bounds_table(found["bounds"]),
        _left_out(found),
    ]
    return "\n\n".join(part for part in parts if part)


def _throughput(rates: dict[str, Any]) -> str:
    jobs = sorted({job for rate in rates.values() for job in rate}, key=int)
    if not jobs:
        return ""
    rows = [
        [name, *(_rate(rate[job]) if job in rate else "–" for job in jobs)]
        for name, rate in rates.items()
    ]
    return table(["cycles/s, concurrent:", *jobs], rows)


def _rate(found: dict[str, float]) -> str:
    failed = f" ({found['failed']:g} failed)" if found["failed"] else ""
    return number(found["per_second"]) + failed


def _idle(idle: dict[str, Any]) -> str:
    keys = {
        "boxes": "boxes",
        "pss_kib_per_box": "PSS a box, KiB",
        "pss_kib_median_init": "median first process",
        "pss_kib_zygote": "zygote",
        "disk_kib_per_box": "disk a box, KiB",
    }
    rows = [[name, *(number(found.get(key)) for key in keys)] for name, found in idle.items()]
    return table(["at rest", *keys.values()], rows) if rows else ""


def _images(images: dict[str, Any]) -> str:
    rows = [[name, spread(found)] for name, found in images.get("ms", {}).items()]
    return table(["embedded, image of", f"{m.FIRST}, ms"], rows) if rows else ""


def _left_out(found: dict[str, Any]) -> str:
    lines = [f"- {name}: {why}" for name, why in found["left_out"].items()]
    for subject, failed in found["failed"].items():
        lines += [f"- {subject}, {measure}: {why}" for measure, why in failed.items()]
    return "\n".join(["Left out:", "", *lines]) if lines else ""
