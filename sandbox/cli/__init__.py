"""The command line: parse, call, print. One file per verb, and no decisions here."""

import errno
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from sandbox.errors import StillroomError

_GIT_NETWORK = ("GIT_SSL", "GIT_SSH", "GIT_HTTP", "GIT_PROXY", "GIT_ASKPASS")
OUR_BUG, INTERRUPTED, USAGE, MACHINE = 70, 130, 2, 3
_YOURS = "is this folder yours? --out and STILLROOM_STORE choose where we write"
_ROOM = "make room, then run the same command again: it goes on where this one stopped"
_FILES = "raise the limit (ulimit -n) or use fewer --jobs, then run the same command again"
_REFUSED = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), ("user", _YOURS, USAGE)),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.EISDIR), ("user", _YOURS, USAGE)),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EIO), ("machine", _ROOM, MACHINE)),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), ("machine", _FILES, MACHINE)),
}
"""What the machine refuses is no bug of ours: code, what to do, exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code.

    0 done, 1 a gate failed, 2 user or spec, 3 some void, 4 nothing selected, 70 our bug,
    130 interrupted.
    """
    from sandbox.cli.app import app

    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    signal.signal(signal.SIGTERM, _interrupt)
    _settle()
    try:
        status = app(arguments, prog_name="stillroom", standalone_mode=False)
    except BrokenPipeError:
        # Whoever read our output has gone; nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, Exception) as e:  # noqa: BLE001 - the boundary: all is told here
        return _tell(_story(e), as_json="--json" in arguments)
    if status == INTERRUPTED:  # typer makes this of ^C
        return _tell(_STOPPED, as_json="--json" in arguments)
    return status if isinstance(status, int) else 0


@dataclass(frozen=True, slots=True)
class _Story:
    code: str
    message: str
    hint: str
    status: int


_STOPPED = _Story("interrupted", "stopped", "run the same command again to go on", INTERRUPTED)


def _story(error: BaseException) -> _Story:
    """What went wrong, for a person; an error that nobody raised on purpose is our bug, and loud."""
    import typer

    # Typer names only some of the errors that its parser raises.
    usage_error: Any = typer.BadParameter.__base__
    if isinstance(error, StillroomError):
        return _Story(error.code, str(error), error.hint, error.exit_status)
    if isinstance(error, usage_error):
        context = getattr(error, "ctx", None)
        hint = f"{context.command_path} --help" if context else ""
        return _Story("usage", str(error.format_message()), hint, USAGE)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return _STOPPED
    if isinstance(error, OSError) and error.errno in _REFUSED:
        code, hint, status = _REFUSED[error.errno]
        where = f"{error.filename}: " if error.filename else ""
        return _Story(code, f"{where}{error.strerror}", hint, status)
    traceback.print_exception(error)
    hint = "this is a bug of ours: please report it with the lines above"
    return _Story("bug", f"{type(error).__name__}: {error}", hint, OUR_BUG)


def _settle() -> None:
    """What of the caller's environment would change what we do."""
    # In a git hook, say, these point git at another repository.
    for name in [n for n in os.environ if n.startswith("GIT_") and not n.startswith(_GIT_NETWORK)]:
        del os.environ[name]
    # Each rollout holds some files open; the soft limit is a default, not a decision.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Being told to end is being stopped: the same way out as ^C, which leaves nothing behind."""
    del number, frame
    raise KeyboardInterrupt


def _tell(story: _Story, *, as_json: bool) -> int:
    if as_json:
        told = {"code": story.code, "message": story.message, "hint": story.hint}
        print(json.dumps({"error": told}))
    hint = f"  hint: {story.hint}\n" if story.hint else ""
    sys.stderr.write(f"error[{story.code}]: {story.message}\n{hint}")
    return story.status
