"""Inspect's .eval files, written by its own library: their layout is its affair."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from sandbox.errors import UserError
from sandbox.formats.inspectlog import evaluation
from sandbox.formats.trajectory import Trajectory


def write(run: Sequence[Trajectory], path: Path) -> None:
    """Raises UserError where the library is not installed. `run` is not empty."""
    try:
        from inspect_ai.log import EvalLog, write_eval_log  # noqa: PLC0415 - an extra, and heavy
    except ImportError:
        raise UserError(
            "inspect_ai is not installed, which writes .eval files",
            hint="pip install 'stillroom[inspect]'",
        ) from None
    log = EvalLog.model_validate(evaluation(run, path.stem))
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as scratch:
        fresh = Path(scratch) / path.name
        write_eval_log(log, str(fresh), format="eval")
        fresh.replace(path)
