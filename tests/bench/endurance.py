"""What only shows in the long run: growth, many boxes at once, runs that are killed.

    ci/bench endurance [--cycles 10000] [--jobs 2] [--alive 500] [--kills 11] [--docker] [--strict]
    ci/bench endurance --write-docs [bench-endurance.json]

Cycles: create, a command, destroy; every 25th uses all a box can do, every 200th a loop device.
What is sampled between them is compared: the second quarter of the run with the last. Alive: so
many boxes at one time, each of which answers. Kills: `kill -9` of a controller with 20 boxes, each
with a sleeper and two daemons; every 5 ms we look whether a process, mount or cgroup is left.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store
from tests.bench import alive, cycles, kills, machine
from tests.bench.clock import TROUBLE
from tests.bench.figures import Bound, bounds_table, growth_table, number
from tests.bench.program import Bench, run, say
from tests.support.tinyimage import tiny_image

LEAST_KILLS = 10


def measure(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {"machine": machine.facts(), "cycles": {}, "alive": {}, "kills": []}
    with tempfile.TemporaryDirectory(prefix="stillroom-endurance-") as folder:
        store = Store(Path(folder) / "store")
        image = tiny_image(store)
        if options.cycles:
            for found["cycles"] in cycles.run(store, image, options.cycles, options.jobs):
                _progress(found["cycles"])
        if options.alive:
            say(f"{options.alive} boxes at once")
            found["alive"] = alive.run(store, image, options.alive)
        for number_of_kill in range(options.kills):
            say(f"kill {number_of_kill + 1} of {options.kills}")
            found["kills"].append(kills.embedded(store, image))
        if options.docker:
            found["docker"] = _killed_docker(store, image, options.kills)
    found["machine"]["load_after"] = machine.load()
    found["bounds"] = [bound.as_json() for bound in bounds(found)]
    return found


def _killed_docker(store: Store, image: Image, count: int) -> list[dict[str, Any]]:
    found = []
    for number_of_kill in range(max(1, count // 4)):
        say(f"kill {number_of_kill + 1} of a run with Docker")
        try:
            found.append(kills.docker(store, image))
        except TROUBLE as e:  # half an hour of other figures must not go with it
            found.append({"left": [f"{type(e).__name__}: {e}"]})
    return found


def bounds(found: dict[str, Any]) -> Iterator[Bound]:
    run, many = found["cycles"], found["alive"]
    if len(run.get("samples", ())) >= 8:
        words = f"{run['cycles']} cycles"
        grown = sum(g.grown for g in cycles.growths(run["samples"]))
        yield Bound(words=f"{words}: quantities that have grown", figure=grown, limit=0)
        yield Bound(words=f"{words}: failed", figure=run["failed"], limit=0)
        yield Bound(words=f"{words}: left over", figure=len(run["left"]), limit=0)
    if many:
        words, wanted = f"{many['wanted']} boxes at once", many["wanted"]
        answered = many["answered"]
        yield Bound(words=f"{words}: answered", figure=answered, limit=wanted, at_least=True)
        yield Bound(words=f"{words}: left over", figure=len(many["left"]), limit=0)
    if found["kills"]:
        times = [kill["ms"] for kill in found["kills"]]
        took = None if None in times else median(times)
        words = "embedded: kill -9 → nothing left, median"
        yield Bound(words=words, figure=took, limit=200, unit="ms")
        yield Bound(words="embedded: kills that left something", figure=times.count(None), limit=0)
        empty = max(kill["empty_groups"] for kill in found["kills"])
        yield Bound(words="embedded: empty cgroups left after kill -9", figure=empty, limit=0)
        left = sum(len(kill["left"]) for kill in found["kills"])
        yield Bound(words="embedded: left after kill -9 and the next start", figure=left, limit=0)
    if "docker" in found:
        left = sum(len(kill["left"]) for kill in found["docker"])
        yield Bound(words="docker: left after kill -9 and the next start", figure=left, limit=0)


def tables(found: dict[str, Any]) -> str:
    run, many = found["cycles"], found["alive"]
    parts = [f"{machine.machine_line(found['machine'])}."]
    if len(run.get("samples", ())) >= 8:
        parts += [
            f"{run['cycles']} cycles with {run['jobs']} at once in {run['seconds']} s:",
            growth_table(cycles.growths(run["samples"])),
            *(f"- {error}" for error in run["errors"]),
        ]
    if many:
        parts += [_alive_words(many), *(f"- {error}" for error in many["errors"])]
    if found["kills"]:
        parts.append(_kill_words(found["kills"]))
    parts += [f"- docker: {left}" for kill in found.get("docker", ()) for left in kill["left"]]
    return "\n\n".join([*parts, bounds_table(found["bounds"])])


def _alive_words(many: dict[str, Any]) -> str:
    return (
        f"{many['answered']} of {many['wanted']} boxes alive at once answered: made in"
        f" {many['create_seconds']} s, answered in {many['answer_seconds']} s, destroyed in"
        f" {many['destroy_seconds']} s; {many['pss_mib']} MiB PSS ({many['pss_mib_per_box']} a"
        f" box), {many['disk_mib']} MiB on the disk."
    )


def _kill_words(found: list[dict[str, Any]]) -> str:
    times = [kill["ms"] for kill in found if kill["ms"] is not None]
    boxes = [kill["boxes_ms"] for kill in found if kill["boxes_ms"] is not None]
    folders = [kill["folders_ms"] for kill in found if kill["folders_ms"] is not None]
    if not times or not boxes:
        return "After kill -9, something was always left."
    return (
        f"{len(found)} kills of a controller with {kills.BOXES} boxes, medians: no process or cgroup"
        f" of a box after {number(median(boxes))} ms (worst {number(max(boxes))}); no process, mount"
        f" or cgroup at all after {number(median(times))} ms (worst {number(max(times))}); no"
        f" folder after {number(median(folders)) if folders else '–'} ms in {len(folders)} of them."
    )


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--cycles", type=int, default=10_000, help="create, a command, destroy (10,000); 0: none")
    add("--jobs", type=int, default=2, help="cycles at one time (2)")
    add("--alive", type=int, default=500, help="boxes alive at one time (500); 0: none")
    add("--kills", type=int, default=11, help=f"{LEAST_KILLS} at least for a median; 0: none (11)")
    add("--docker", action="store_true", help="kill runs with Docker as well")


def _progress(found: dict[str, Any]) -> None:
    last = found["samples"][-1]
    shown = ", ".join(f"{name} {value:g}" for name, value in last.items())
    say(f"{found['cycles']} cycles, {found['failed']} failed, {found['seconds']} s: {shown}")


if __name__ == "__main__":
    program = Bench(
        name="endurance", about=__doc__, arguments=_arguments, measure=measure, tables=tables
    )
    sys.exit(run(program))
