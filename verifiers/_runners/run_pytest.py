"""Runs the hidden tests, in the box: `python3 -P -s run_pytest.py plan.json`.

Records go, one JSON object a line, to what was standard output when this began; whatever the
tests print goes to standard error. pytest and this file are loaded before the code under test can
be imported, and that code comes last on the search path.
"""

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

Tell = Callable[[dict[str, Any]], None]
_MESSAGE_CHARACTERS = 1000
_BEYOND = ("192.0.2.1", 80)
"""An address of TEST-NET-1 (RFC 5737): nobody's, so trying it reaches nobody."""
_DATE = ("/bin/date", "+%s")
_RAW = """\
import ctypes, platform
number = {"x86_64": 228, "aarch64": 113}[platform.machine()]
now = (ctypes.c_int64 * 2)()
assert ctypes.CDLL(None).syscall(number, 0, now) == 0
print(now[0] + now[1] / 1e9)
"""
_ADDR_NO_RANDOMIZE = 0x0040000


class Recorder:
    """Tells each test's outcome once all of its phases are over."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._phases: dict[str, list[pytest.TestReport]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when == "teardown":
            self._tell(_summary(report.nodeid, self._phases.pop(report.nodeid)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell({"uncollected": report.nodeid, "message": _message(report)})


class Shuffler:
    """Runs the tests in an order drawn with a seed, whatever any other plugin wants."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: item.nodeid)
        random.Random(self._seed).shuffle(items)


def _summary(nodeid: str, phases: list[pytest.TestReport]) -> dict[str, Any]:
    outcome, message = "passed", ""
    for report in phases:
        found = _outcome(report)
        if found != "passed" and outcome == "passed":
            outcome, message = found, _message(report)
    return {
        "check": nodeid,
        "outcome": outcome,
        "seconds": round(sum(r.duration for r in phases), 6),
        "message": message,
    }


def _outcome(report: pytest.TestReport) -> str:
    expected_to_fail = hasattr(report, "wasxfail")
    if report.failed:
        return "failed" if report.when == "call" else "error"
    if report.skipped:
        return "xfailed" if expected_to_fail else "skipped"
    return "xpassed" if expected_to_fail else "passed"


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash else report.longrepr or "")
    return text.encode("utf-8", "backslashreplace").decode()[:_MESSAGE_CHARACTERS]


def probe(*, draw: bool, raw: bool) -> dict[str, Any]:
    """What this box says of its clock, network and settings.

    draw: chance is held, so tell of it; raw: ask the kernel itself for the time, too.
    """
    with open("/proc/net/dev", encoding="ascii") as f:
        interfaces = sorted(line.split(":")[0].strip() for line in f if ":" in line)
    umask = os.umask(0)
    os.umask(umask)
    settings = {
        "TZ": os.environ.get("TZ", ""),
        "LANG": os.environ.get("LANG", ""),
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", ""),
        "hash_randomization": str(sys.flags.hash_randomization),
        "encoding": sys.getfilesystemencoding(),
        "hostname": socket.gethostname(),
        "user": f"{os.getuid()}:{os.getgid()}",
        "umask": f"{umask:03o}",
        "aslr": "off" if _fixed_layout() else "on",
    }
    if draw:
        settings["drawn"] = os.getrandom(8).hex()
    numbers: dict[str, float] = {
        "cpus": os.cpu_count() or 0,
        "usable_cpus": len(os.sched_getaffinity(0)),
    }
    if raw:
        numbers["raw_clock"] = _said_by(sys.executable, "-I", "-S", "-c", _RAW)
    return {
        "clock": {
            "python": time.time(),
            "date": _said_by(*_DATE),
            "date_bare": _said_by(*_DATE, env={}),
        },
        "interfaces": interfaces,
        "reached": [f"{_BEYOND[0]}:{_BEYOND[1]}"] if _reachable() else [],
        "settings": settings,
        "variables": sorted(os.environ),
        "numbers": numbers,
    }


def _said_by(*program: str, env: dict[str, str] | None = None) -> float:
    """The number that another program prints; -1 for none."""
    asked = subprocess.run(program, capture_output=True, text=True, check=False, env=env)
    try:
        return float(asked.stdout)
    except ValueError:
        return -1.0


def _fixed_layout() -> bool:
    """Is this program laid out in memory as every other run of it is?"""
    try:
        with open("/proc/self/personality", encoding="ascii") as f:
            return bool(int(f.read(), 16) & _ADDR_NO_RANDOMIZE)
    except OSError:
        return False


def _reachable() -> bool:
    """Is there a route out of the box? UDP: nothing would be sent even if there were one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(_BEYOND)
        except OSError:
            return False
    return True


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as f:
        plan = json.load(f)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(record: dict[str, Any]) -> None:
        out.write(json.dumps(record) + "\n")
        out.flush()

    draw, raw = plan["draw"], plan["raw"]
    os.umask(plan["umask"])
    plugins: list[object] = [Recorder(tell)]
    if plan["order"] is not None:
        plugins.append(Shuffler(plan["order"]))
    tell({"probe": probe(draw=draw, raw=raw)})
    os.environ.update(plan["environment"])
    sys.path += [p for p in plan["environment"].get("PYTHONPATH", "").split(":") if p]
    os.chdir(plan["workdir"])
    began = time.monotonic()
    options = ["-c", plan["ini"], "--rootdir", plan["workdir"], "--confcutdir", plan["workdir"]]
    quiet = ["-p", "no:cacheprovider", "-q", "--tb=short", "--color=no"]
    status = pytest.main([*options, *quiet, *plan["arguments"]], plugins=plugins)
    tell({"probe": probe(draw=draw, raw=False)})
    tell({"end": int(status), "seconds": round(time.monotonic() - began, 3)})
    out.close()
    # Threads and exit hooks of the code under test have nothing left to say.
    sys.stderr.flush()
    os._exit(int(status))


if __name__ == "__main__":
    main()
