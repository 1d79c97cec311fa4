"""What every bench is as a program: options, a JSON file, tables, a section of the documentation."""

import argparse
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.figures import broken, write_section

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"


def _as_they_are(_: argparse.Namespace) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    name: str
    """`ci/bench NAME`, bench-NAME.json, and the section of the page."""
    about: str | None
    arguments: Callable[[argparse.ArgumentParser], None]
    """Adds the options that only this one has."""
    measure: Callable[[argparse.Namespace], dict[str, Any]]
    """Everything that was found, ready for JSON, its bounds under `bounds`."""
    tables: Callable[[dict[str, Any]], str]
    """What is said about it, in Markdown: from the JSON alone."""
    settle: Callable[[argparse.Namespace], None] = _as_they_are
    """Changes options that follow from others."""


def run(bench: Bench) -> int:
    """The exit code: 0, 1 if a bound does not hold and --strict is given, 130 when stopped."""
    options = _options(bench)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after ^C
    if finished := options.table or options.write_docs:
        text = bench.tables(json.loads(finished.read_bytes()))
        if options.write_docs:
            write_section(PAGE, bench.name, text)
        else:
            print(text)
        return 0
    try:
        found = bench.measure(options)
    except KeyboardInterrupt:
        say("stopped; everything was removed")
        return 130
    options.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(bench.tables(found))
    return 1 if options.strict and broken(found["bounds"]) else 0


def say(text: str) -> None:
    """How far we are; the tables have standard output for themselves."""
    print(text, file=sys.stderr, flush=True)


def plain(options: argparse.Namespace) -> dict[str, Any]:
    """What of them can be written down."""
    return {k: v for k, v in vars(options).items() if isinstance(v, (int, float, str, bool, list))}


def _options(bench: Bench) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"ci/bench {bench.name}",
        description=bench.about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bench.arguments(parser)
    default = Path(f"bench-{bench.name}.json")
    add = parser.add_argument
    add("--strict", action="store_true", help="exit code 1 when a bound does not hold")
    add("--out", "--json", type=Path, default=default, help=str(default))
    add("--table", type=Path, metavar="JSON", help="only print the tables of a finished run")
    add(
        "--write-docs",
        type=Path,
        nargs="?",
        const=default,
        metavar="JSON",
        help="only put them into the documentation",
    )
    options = parser.parse_args()
    bench.settle(options)
    return options
