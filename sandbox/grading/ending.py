"""How a run of the hidden tests ended, and whose doing that was. Pure.

Whatever the code under test can bring about is no fault: void would be a way out.
"""

import signal

from sandbox.grading.readout import Ended, Readout
from sandbox.model.task import VerifierSpec
from sandbox.model.verdict import Ran
from sandbox.runtime.base import ExecResult

FLOODED = "the runner told more than any suite has to tell"
_WHY = {
    "overran": "too many checks, or one of them twice, took too long",
    "flooded": FLOODED,
    "stopped": "the runner was stopped, and did not go on",
}


def how_it_ended(
    spec: VerifierSpec, done: ExecResult, told: Readout, *, moved: bool
) -> tuple[Ran, str]:
    """And why, where it did not reach its end as it should. moved: the box did not stand still."""
    during = f", during {told.running}" if told.running else ""
    limit = f": {done.limit}" if done.limit else ""
    if done.timed_out or (told.ended and told.ended.how == "timed out"):
        return Ran.TIMED_OUT, f"the checks took more than {spec.seconds:g} s{during}"
    if told.ended is None:
        return Ran.CRASHED, f"the box was ended early (exit code {done.exit_code}){limit}{during}"
    if why := _early(told.ended, told):
        return Ran.CRASHED, f"{why}{limit}{during}"
    if moved:
        return Ran.CRASHED, "the box did not stand still once the code under test was loaded"
    uncollected = "could not be collected: " + ", ".join(told.uncollected)
    return Ran.FINISHED, uncollected if told.uncollected else ""


def _early(ended: Ended, told: Readout) -> str:
    """Empty when it ended as it said it would."""
    if ended.how != "exited":
        return _WHY.get(ended.how, f"the runner was ended ({ended.how})")
    if ended.exit_code > 128:
        return f"the runner was ended by {_signal(ended.exit_code - 128)}"
    if told.status is None:
        return f"the runner ended early with exit code {ended.exit_code}"
    if told.status != ended.exit_code:
        return f"the runner ended with exit code {ended.exit_code}, after it had said {told.status}"
    return ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
