"""Every submission under every shift, in fake boxes whose tests hang on what they are told to."""

import json
import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sandbox.audit.certify import shelf
from sandbox.audit.certify.execute import Trial, certify, manifest, total, trial
from sandbox.audit.certify.findings import Finding
from sandbox.audit.certify.shifts import all_shifts
from sandbox.errors import RuntimeFault
from sandbox.model.record import Rollout
from sandbox.model.task import CheckSpec, TaskSpec
from sandbox.rollout.observer import Observer
from sandbox.rollout.outdir import OutFolder
from sandbox.rollout.run import World
from sandbox.rollout.suite import Plan
from sandbox.runtime.base import ExecResult
from sandbox.runtime.fake import Call, FakeBox, FakeRuntime, said
from sandbox.runtime.store import Store
from tests.support.homes import GivenDepot, a_task, some_supplies
from tests.support.supervised import supervised

SOLUTION = b"""diff --git a/src/solved b/src/solved
new file mode 100644
--- /dev/null
+++ b/src/solved
@@ -0,0 +1 @@
+yes
"""
Test = Callable[[FakeBox, Call, dict[str, Any]], bool]
"""Does it pass in this box, run in this way, with this plan?"""


def year(box: FakeBox) -> int:
    assert box.spec.still
    return datetime.fromtimestamp(box.spec.still.at_ns / 1e9, UTC).year


HANGS_ON: dict[str, Test] = {
    "solution": lambda box, call, plan: "/work/toy/src/solved" in box.files,
    "year": lambda box, call, plan: year(box) == 2024,
    "zone": lambda box, call, plan: box.spec.environment["TZ"] == "UTC",
    "hash": lambda box, call, plan: box.spec.environment["PYTHONHASHSEED"] == "0",
    "order": lambda box, call, plan: plan["order"] is None,
    "processors": lambda box, call, plan: box.spec.limits.cpus == 2.0,
    "user": lambda box, call, plan: plan["user"] == "65534:65534",
    "host": lambda box, call, plan: box.spec.hostname == "box",
    "mask": lambda box, call, plan: plan["umask"] == 0o022,
    "clock": lambda box, call, plan: box.spec.still is not None and box.spec.still.mode != "fixed",
}
CAUGHT = {
    "year": {"year-later", "year-earlier", "decade-later", "decade-earlier", "seconds-overflow"},
    "zone": {"zone-kolkata", "zone-chatham", "zone-west", "dst-gap", "dst-fold"},
    "hash": {"hash-seed-1", "hash-seed-4242", "hash-seed-random"},
    "order": {"order-1", "order-2", "order-3"},
    "processors": {"one-cpu", "one-cpu-load"},
    "user": {"user"},
    "host": {"hostname"},
    "mask": {"umask"},
    "clock": {"clock-fixed"},
}


class Boxes:
    """What answers in them. Each of these tests is a check; `strays` are told beside them."""

    def __init__(self, tests: dict[str, Test], strays: Callable[[], list[str]] = list) -> None:
        self.tests = tests
        self.strays = strays
        self.lost: Callable[[FakeBox, Call], bool] = lambda box, call: False

    def reply(self, box: FakeBox, call: Call) -> ExecResult | None:
        if call.argv[0] == "sh":
            return said()  # busy from now on
        if "/verify/supervise.py" not in call.argv:
            return None
        if self.lost(box, call):
            return said("", 1, errors="Permission denied\n")
        plan = json.loads(box.files["/verify/plan.json"].data)
        passed = {name: test(box, call, plan) for name, test in self.tests.items()}
        records: list[dict[str, Any]] = [
            {"probe": probe(box, call, plan)},
            *({"check": n, "outcome": "passed" if ok else "failed"} for n, ok in passed.items()),
            *({"check": n, "outcome": "passed"} for n in self.strays()),
            {"probe": probe(box, call, plan)},
            {"end": (code := int(not all(passed.values()))), "seconds": 0.1},
        ]
        told = b"".join(json.dumps(r).encode() + b"\n" for r in records)
        return ExecResult(exit_code=0, stdout=supervised(told, code), stderr=b"")


def probe(box: FakeBox, call: Call, plan: dict[str, Any]) -> dict[str, Any]:
    assert box.spec.still
    at = box.spec.still.at_ns / 1e9
    env = box.spec.environment
    return {
        "clock": {"python": at, "date": at, "date_bare": at},
        "interfaces": ["lo"],
        "settings": {
            "TZ": env["TZ"],
            "LANG": env["LANG"],
            "PYTHONHASHSEED": env["PYTHONHASHSEED"],
            "hash_randomization": "0" if env["PYTHONHASHSEED"] == "0" else "1",
            "hostname": box.spec.hostname,
            "user": plan["user"],
            "umask": f"{plan['umask']:03o}",
        },
        "variables": sorted(env),
    }


class Counting(Observer):
    def __init__(self, stop_after: int = 0) -> None:
        self.ends: list[str] = []
        self._stop_after = stop_after

    def ended(self, rollout: Rollout) -> None:
        self.ends.append(rollout.agent)
        if len(self.ends) == self._stop_after:
            raise KeyboardInterrupt


class Lab:
    """A home with one task, a folder for runs, and boxes."""

    def __init__(self, folder: Path, boxes: Boxes) -> None:
        self.folder = folder
        self.boxes = boxes
        checks = tuple(CheckSpec(id=name) for name in boxes.tests)
        self.task: TaskSpec = a_task(folder / "home", checks=checks)
        (folder / "home/task_specs/toy-1/solution.patch").write_bytes(SOLUTION)
        self.runtime = FakeRuntime(boxes.reply)

    def trial(self, *names: str) -> Trial:
        return trial(self.task, (), names)

    def run(
        self,
        found: Trial,
        *,
        out: str = "out",
        observer: Observer | None = None,
        workers: int = 2,
    ) -> Finding:
        depot = GivenDepot(Store(self.folder / "store"), lambda *_: None)
        depot.given = some_supplies(self.task, self.folder / "supplies")
        world = World(runtime=self.runtime, depot=depot, observer=observer or Observer())
        with OutFolder(self.folder / out, manifest([found], "fake")) as folder:
            (finding,) = certify([found], world, folder, Plan(workers=workers, retries=1))
        return finding


@pytest.fixture
def lab(tmp_path: Path) -> Callable[..., Lab]:
    return lambda tests=HANGS_ON, **more: Lab(tmp_path, Boxes(tests, **more))


def only(*names: str) -> dict[str, Test]:
    return {n: HANGS_ON[n] for n in ("solution", *names)}


def test_whatever_a_test_hangs_on_is_caught_by_the_shifts_that_move_it(lab: Callable[..., Lab]):
    it = lab()
    finding = it.run(it.trial())
    assert (finding.problems, finding.void, finding.beside) == ((), (), ())
    caught = {v.check: {s.shift for s in v.sightings} for v in finding.varied}
    assert caught.pop("year") >= CAUGHT["year"]
    assert caught == {name: shifts for name, shifts in CAUGHT.items() if name != "year"}
    assert {s.submission for v in finding.varied for s in v.sightings} == {"oracle", "nop"}


def test_a_task_that_hangs_on_nothing_is_certified_with_the_same_bytes_twice(
    lab: Callable[..., Lab],
):
    it = lab(only())
    found = it.trial()
    written = []
    for out in ("one", "two"):
        done = shelf.settle(found, it.run(found, out=out), None, exclude=False)
        written.append(Path(done.certificate).read_bytes())
    assert written[0] == written[1]
    assert json.loads(written[0])["certified"] is True
    assert len(it.runtime.boxes) == 2 * total([found]) == 4 * len(all_shifts(it.task.clock))
    assert shelf.hold(it.task, None).objections == ()


def test_a_check_that_hangs_on_chance_varies_from_run_to_run(lab: Callable[..., Lab]):
    chance = random.Random(7)
    it = lab(only() | {"chance": lambda box, call, plan: chance.random() < 0.5})
    (varied,) = it.run(it.trial("repeat-*")).varied
    assert (varied.check, varied.why) == ("chance", "varies from run to run")


def test_a_name_that_chance_had_a_part_in_is_told_by_its_family(lab: Callable[..., Lab]):
    chance = random.Random(7)
    it = lab(only(), strays=lambda: [f"t::name[{chance.getrandbits(128):032x}]"])
    finding = it.run(it.trial("repeat-2"))
    assert finding.still
    (beside,) = finding.beside
    assert (beside.check, beside.suspicion) == ("t::name[*]", "its name holds a UUID")


def test_a_run_that_could_not_start_is_void_and_never_the_same(lab: Callable[..., Lab]):
    """As an audit once had it whose tests could not be read by another user."""
    it = lab(only())
    it.boxes.lost = lambda box, call: b"1000:1000" in box.files["/verify/plan.json"].data
    found = it.trial("user", "umask")
    finding = it.run(found)
    assert [v.partition(":")[0] for v in finding.void] == ["oracle with user", "nop with user"]
    assert "Permission denied" in finding.void[0]
    done = shelf.settle(found, finding, None, exclude=False)
    assert (done.certificate, shelf.exit_code([finding])) == ("", 3)
    # What had ended is not run again; what was void is, by the same command.
    it.boxes.lost = lambda box, call: False
    watch = Counting()
    assert it.run(found, observer=watch).still
    assert sorted(watch.ends) == ["nop with user", "oracle with user"]


def test_a_run_that_was_stopped_goes_on_where_it_was(lab: Callable[..., Lab]):
    it = lab(only())
    found = it.trial("repeat-*")
    with pytest.raises(KeyboardInterrupt):
        it.run(found, observer=Counting(stop_after=5))
    # A process that was stopped ends with what it had begun; here that goes on beside us.
    for thread in threading.enumerate():
        if thread.name.startswith("rollout"):
            thread.join(60)
    rest = Counting()
    assert it.run(found, observer=rest).still
    assert len(rest.ends) == total([found]) - 5


def test_where_some_programs_see_another_clock_nothing_is_run(lab: Callable[..., Lab]):
    it = lab(only())
    it.runtime = FakeRuntime(it.boxes.reply, still="the kernel is too old")
    with pytest.raises(RuntimeFault, match="no certificate can be given here: the kernel"):
        it.run(it.trial())
    assert it.runtime.boxes == []


def test_what_is_wrong_altogether_shows_early(lab: Callable[..., Lab]):
    """What all runs are held against comes first, of every submission."""
    it = lab(only())
    watch = Counting()
    it.run(it.trial("user"), observer=watch, workers=1)
    assert watch.ends == [
        "oracle with repeat-1",
        "nop with repeat-1",
        "oracle with user",
        "nop with user",
    ]
