"""docs/reference/isolation.md as data: what its table says is what the attacks are held to."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "isolation.md"
INSIDE = Path(__file__).parent / "inside"
RUNTIMES = {"embedded": [pytest.mark.box], "docker": [pytest.mark.box, pytest.mark.docker]}
_ROW = re.compile(r"^\| ([^|]+) \| (held|not held) \| (held|not held) \| ([^|]+) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    attack: str
    embedded: str
    docker: str
    how: str


def rows() -> dict[str, Row]:
    found = [Row(*row) for row in _ROW.findall(PAGE.read_text(encoding="utf-8"))]
    return {row.attack: row for row in found}


def tried(attacks: Iterable[str]) -> pytest.MarkDecorator:
    """Each attack on each runtime. Where the page says `not held`, it must not be held."""
    page = rows()
    cases = [
        pytest.param(
            runtime,
            attack,
            marks=[*marks, *_state(page.get(attack), runtime)],
            id=f"{attack}, {runtime}",
        )
        for runtime, marks in RUNTIMES.items()
        for attack in attacks
    ]
    return pytest.mark.parametrize(("benches", "attack"), cases, indirect=["benches"])


def attack(name: str) -> pytest.MarkDecorator:
    """One attack that is a test of its own, on each runtime."""
    page = rows()
    cases: list[Any] = [
        pytest.param(
            runtime, marks=[*marks, *_state(page.get(name), runtime)], id=f"{name}, {runtime}"
        )
        for runtime, marks in RUNTIMES.items()
    ]
    return pytest.mark.parametrize("benches", cases, indirect=True)


def _state(row: Row | None, runtime: str) -> list[pytest.MarkDecorator]:
    if row is None or getattr(row, runtime) == "held":
        return []
    return [pytest.mark.xfail(strict=True, raises=AssertionError, reason=row.how)]
