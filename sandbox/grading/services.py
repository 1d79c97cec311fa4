"""Services that a task's checks ask: started in the box of a verdict from what the task says."""

import dataclasses
import json
from typing import Any

from sandbox.errors import VerifierFault
from sandbox.formats.digest import Entry
from sandbox.grading.plan import Job
from sandbox.runtime.base import Box, ExecResult
from sandbox.runtime.supplies import Supplies
from sandbox.runtime.tarball import pack

_PYTHON = ("/usr/bin/python3", "-I", "-B", "-S")
_PROGRAM = "services.py"
_USER, _ROOT = "65531:65531", "0:0"
"""Nobody else's: the checks are another's, and neither can touch the other."""
_MARGIN_SECONDS = 30.0
_HOME = "/tmp/services"  # noqa: S108 - the box's


def start_services(box: Box, job: Job, supplies: Supplies, folder: str) -> str:
    """Why they did not come up, which is the submission's doing; empty when they did.

    folder: where in the box what is ours comes to lie. Before the hidden tests are put.
    """
    services = job.task.verifier.services
    if not services:
        return ""
    if _PROGRAM not in supplies.runners:
        raise VerifierFault(f"there is no verifiers/_runners/{_PROGRAM}", retry=False)
    plan = json.dumps(_plan(job, folder)).encode()
    program = Entry(_PROGRAM, "file", supplies.runners[_PROGRAM])
    box.put(pack([program, Entry("services.json", "file", plan)]), folder)
    done = box.exec(
        [*_PYTHON, f"{folder}/{_PROGRAM}", f"{folder}/services.json"],
        seconds=sum(s.seconds for s in services) + _MARGIN_SECONDS,
        cwd="/",
        trusted=True,
    )
    return _why(done)


def _plan(job: Job, folder: str) -> dict[str, Any]:
    return {
        # Where the checks are root's, there is nobody else in the box.
        "user": _ROOT if job.plan.user == _ROOT else _USER,
        "umask": job.plan.box.umask,
        "workdir": job.task.workdir,
        "home": _HOME,
        "logs": f"{folder}/services",
        "environment": job.plan.environment,
        "services": [dataclasses.asdict(s) for s in job.task.verifier.services],
    }


def _why(done: ExecResult) -> str:
    """What it told last counts; once a service runs, how this ends may be that one's doing."""
    told = [_record(line) for line in done.stdout.splitlines()]
    match told[-1] if told else None:
        case {"up": True} if done.exit_code == 0:
            return ""
        case {"down": str(why)}:
            return f"{why} ({done.limit})" if done.limit else why
        case {"starting": str(name)}:
            limit = f": {done.limit}" if done.limit else ""
            return f"service `{name}` did not come up{limit}"
        case _:
            words = done.stderr.decode("utf-8", "backslashreplace").strip()[-500:]
            raise VerifierFault(f"services cannot be started (exit {done.exit_code}): {words}")


def _record(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
