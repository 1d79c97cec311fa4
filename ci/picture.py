"""Draws docs/run.svg from a run's folder: the picture in the README.

.venv/bin/python ci/picture.py runs/core-oracle-embedded-1
"""

import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sandbox.formats.records import read_results
from sandbox.report.summary import summarize
from sandbox.report.tables import rollouts_table, summary_line

TARGET = Path(__file__).resolve().parent.parent / "docs" / "run.svg"
COMMAND = "stillroom run --suite core --agent oracle -j 2"
COLUMNS = 92


def main() -> None:
    rollouts = read_results(Path(sys.argv[1]) / "results.jsonl")
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text("$ ", "dim") + Text(COMMAND, "bold"))
        console.print(rollouts_table(rollouts))
        console.print()
        console.print(Text(summary_line(summarize(rollouts))))
    svg = console.export_svg(title="stillroom", unique_id="stillroom")
    # The picture must not fetch fonts when it is looked at.
    TARGET.write_text(re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
