"""Writes docs/reference/clock-table.md from what test_table.py has found.

STILLROOM_CLOCK_TABLE=table.json .venv/bin/pytest tests/contract/clock
.venv/bin/python -m tests.contract.clock.page table.json
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.contract.clock.answers import MODES
from tests.contract.clock.rows import ROWS

PAGE = Path(__file__).parents[3] / "docs/reference/clock-table.md"
NOTICE = "<!-- Made by tests/contract/clock/page.py; do not edit. -->"
INTRODUCTION = """\
Programs of many kinds, each run in a box whose clock starts at 2024-05-15T12:00:00Z, in each mode of
the clock, on each runtime: `tests/contract/clock` holds them all to it. A cell is right when every
instant that the program told, its files' times among them, lies between what the box's clock said
just before and just after; when every wait took as long as it was to take, in monotonic time; and
when the program came to its end. Figures are seconds, for how long it ran, some of them at once.\
"""


def page(found: dict[str, Any]) -> str:
    columns = [(kind, mode) for kind in sorted(found) for mode in MODES if mode in found[kind]]
    head = ["program", *(f"{kind}, {mode}" for kind, mode in columns)]
    rows = [
        [row.name, *(_cell(found[kind][mode].get(row.name)) for kind, mode in columns)]
        for row in ROWS
    ]
    right = sum(cell.startswith("✔") for row in rows for cell in row[1:])
    lines = [head, ["---"] * len(head), *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    said = f"{len(ROWS)} programs, {len(columns)} columns: {right} of {len(ROWS) * len(columns)} are right."
    return f"# What sees the clock of a box\n\n{NOTICE}\n\n{INTRODUCTION}\n\n{said}\n\n{table}\n"


def _cell(found: list[Any] | None) -> str:
    if found is None:
        return "-"
    wrong, seconds = found
    return f"✘ {wrong[0][:60]}".replace("|", "\\|") if wrong else f"✔ {seconds:.1f}"


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(Path(sys.argv[1]).read_text("utf-8"))), encoding="utf-8")
