"""Saved evaluation logs against the verdicts that were published on them: ci/bench logs --help."""

import argparse
import json
import time
from collections import Counter
from pathlib import Path

from sandbox.adapters.savedlogs.regrade import Regraded, regrade_all
from sandbox.formats.logs.sighting import Edition

_REPORTS = ("published.json", "report.json", "results.json")
_KEYS = ("resolved", "resolved_ids")


def main() -> int:
    arguments = _arguments()
    different = 0
    for folder in arguments.dirs:
        different += _one(folder, arguments.dataset, arguments.published)
    return 1 if different else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ci/bench logs", description=__doc__)
    parser.add_argument(
        "dirs",
        metavar="DIR",
        nargs="+",
        type=Path,
        help="a run: logs/ (or the logs themselves), instances.jsonl, published.json",
    )
    parser.add_argument("--dataset", type=Path, help="instead of DIR/instances.jsonl")
    parser.add_argument("--published", type=Path, help="instead of DIR/published.json")
    return parser.parse_args()


def _one(folder: Path, dataset: Path | None, published: Path | None) -> int:
    logs = folder / "logs" if (folder / "logs").is_dir() else folder
    began = time.monotonic()
    dataset = dataset or folder / "instances.jsonl"
    found = regrade_all(logs, dataset)
    seconds = time.monotonic() - began
    resolved = _published(published or next(folder / n for n in _REPORTS if (folder / n).exists()))
    different = [log for log in found.logs if log.resolved != (log.instance_id in resolved)]
    again = _by_other_editions(logs, dataset, different)
    print(f"{folder}: {len(found.logs)} logs in {seconds:.2f} s")
    print(f"  equal to what was published: {len(found.logs) - len(different)}")
    print(f"  different: {len(different)}")
    for log in different:
        print(f"    {_told(log, was=log.instance_id in resolved)}")
        print(
            f"      the published verdict is that of edition: {', '.join(again[log.instance_id])}"
        )
    print(f"  resolved as published, and not by our own rule: {_unlike(found.logs)}")
    counts = Counter(flag.doubt.value for log in found.logs for flag in log.flags)
    for doubt, count in counts.most_common():
        print(f"  flagged {doubt}: {count}")
    for odd in found.odd:
        print(f"  not graded: {odd.where}: {odd.why}")
    lost = resolved & set(found.missing)
    print(f"  no log: {len(found.missing)} instances, {len(lost)} of them published as resolved")
    return len(different) + len(lost)


def _by_other_editions(
    logs: Path, dataset: Path, different: list[Regraded]
) -> dict[str, list[str]]:
    """Whose rule gives the published verdict, where the rule of the log's own edition does not."""
    found: dict[str, list[str]] = {log.instance_id: [] for log in different}
    for edition in Edition if different else ():
        now = {log.instance_id: log for log in regrade_all(logs, dataset, edition).logs}
        for log in different:
            if now[log.instance_id].resolved != log.resolved:
                found[log.instance_id].append(edition.value)
    return {name: editions or ["none"] for name, editions in found.items()}


def _published(path: Path) -> set[str]:
    report = json.loads(path.read_text(encoding="utf-8"))
    return set(next(report[key] for key in _KEYS if key in report))


def _told(log: Regraded, *, was: bool) -> str:
    flags = ", ".join(flag.doubt.value for flag in log.flags) or "no flag"
    then = "resolved" if was else "not resolved"
    return f"{log.instance_id}: published {then}, now {log.result.state}: {log.result.why}; {flags}"


def _unlike(logs: tuple[Regraded, ...]) -> str:
    names = [log.instance_id for log in logs if log.resolved and not log.ours]
    return ", ".join(names) or "none"


if __name__ == "__main__":
    raise SystemExit(main())
