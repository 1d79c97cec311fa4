"""A run as an entry of a SWE-bench leaderboard: the folder that its maintainers ask for.

all_preds.jsonl, metadata.yaml, README.md, results/results.json, logs/<instance>/, trajs/<instance>.traj
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.adapters.evaluation import Graded, Load, evaluated, one_model, write_instance
from sandbox.adapters.trajectories import Found, Wanted, rollouts
from sandbox.errors import UserError
from sandbox.formats import jsonfile, sweagent, yamlfile
from sandbox.formats.records import Appender
from sandbox.formats.swebenchreport import Result, run_report
from sandbox.rollout.folder import PATCH, RolloutFolder
from sandbox.rollout.outdir import RESULTS

_README = """# {name}

{resolved} of {total} instances are resolved.

Graded by Stillroom: each patch in a clean box without a network, where the clock stands at the task's
date. `results/results.json` is the report of the run, `logs/` has each instance's report, patch and
the output of its tests, `trajs/` what the agent did, as SWE-agent's trajectories.
"""
_NEVER_RUN = "it was never run: there is no rollout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Who is to stand on the leaderboard."""

    name: str
    site: str = ""
    oss: bool = False
    """Is the system open source?"""
    model: str | None = None
    """Whose patches, where the run has those of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    written: tuple[Path, ...]
    """What stands at its top."""
    untold: Mapping[str, str]
    """Instance → why there is no trajectory of it."""

    @property
    def lacks(self) -> list[str]:
        """The same for people, a line for each reason."""
        counts = Counter(self.untold.values())
        return [f"no trajectory ({n}): {why}" for why, n in counts.items()]


def export_leaderboard(run: Path, out: Path, entry: Entry, load: Load) -> Exported:
    """Writes into `out`, which must be new or empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there already, and not empty", hint="choose another --out")
    model, graded = one_model(evaluated(run, load), entry.model, run)
    try:
        return _write(run, out, entry, model, graded)
    except BaseException:
        # Half an entry would be taken for one, and be in the way of the next try.
        shutil.rmtree(out, ignore_errors=True)
        raise


def _write(run: Path, out: Path, entry: Entry, model: str, graded: Graded) -> Exported:
    out.mkdir(parents=True, exist_ok=True)
    _write_predictions(out / "all_preds.jsonl", model, graded)
    head = {"name": entry.name, "oss": entry.oss, "site": entry.site or None, "verified": False}
    jsonfile.write(out / "metadata.yaml", yamlfile.dumps(head))
    results = {**run_report(graded.results, graded.instances), **_lists(graded.results)}
    jsonfile.write(out / "results" / "results.json", jsonfile.dumps(results))
    for result in graded.results:
        folder = graded.folders.get(result.instance_id)
        write_instance(out / "logs" / result.instance_id, result, folder)
    untold = _write_trajectories(out / "trajs", run, graded)
    done = Exported(written=(), untold=untold)
    resolved = sum(r.state == "resolved" for r in graded.results)
    told = _README.format(name=entry.name, resolved=resolved, total=len(graded.instances))
    lacks = "".join(f"\n{line}.\n" for line in done.lacks)
    jsonfile.write(out / "README.md", told + lacks)
    return Exported(written=tuple(sorted(out.iterdir())), untold=untold)


def _write_trajectories(place: Path, run: Path, graded: Graded) -> dict[str, str]:
    """Returns for those without one why there is none."""
    place.mkdir()
    found: dict[Path, Found] = {}
    if (run / RESULTS).exists() and graded.folders:
        found = {one.folder.path: one for one in rollouts(Wanted(run=run, out=place))[0]}
    untold: dict[str, str] = {}
    for name in (r.instance_id for r in graded.results):
        folder = graded.folders.get(name)
        one = found.get(folder.path) if folder else None
        if one is None or one.lacks:
            untold[name] = one.lacks if one else _NEVER_RUN
        else:
            jsonfile.write(place / f"{name}.traj", sweagent.dumps(sweagent.traj(one.told())))
    return untold


def _write_predictions(path: Path, model: str, graded: Graded) -> None:
    path.unlink(missing_ok=True)
    with Appender(path, sync=False) as out:
        for result in sorted(graded.results, key=lambda r: r.instance_id):
            patch = _patch(graded.folders.get(result.instance_id))
            out.append({
                "instance_id": result.instance_id,
                "model_name_or_path": model,
                "model_patch": patch.decode("utf-8", "replace"),
            })  # fmt: skip


def _patch(folder: RolloutFolder | None) -> bytes:
    path = folder.path / PATCH if folder else None
    return path.read_bytes() if path and path.exists() else b""


def _lists(results: Iterable[Result]) -> dict[str, Any]:
    """The same in the words of older tools, beside those of the report."""
    ids = {r.instance_id: r for r in results}

    def those(*states: str) -> list[str]:
        return sorted(i for i, r in ids.items() if r.state in states)

    return {
        "no_generation": those("empty"),
        "generated": those("resolved", "unresolved", "error", "void"),
        "with_logs": those("resolved", "unresolved"),
        "no_apply": those("error"),
        "applied": those("resolved", "unresolved"),
        "test_errored": those("void"),
        "test_timeout": sorted(i for i, r in ids.items() if r.why.startswith("timed out")),
        "resolved": those("resolved"),
    }
