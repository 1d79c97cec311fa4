"""The command line: parse, call, print. One file per verb, and no decisions here."""

import errno
import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import Any

from sandbox.errors import StillroomError

OUR_BUG, INTERRUPTED, USAGE, MACHINE = 70, 130, 2, 3
_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EROFS, errno.EIO}
"""The machine has run out of something: nobody's bug."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code.

    0 done, 1 a gate failed, 2 user or spec, 3 some void, 4 nothing selected, 70 our bug,
    130 interrupted.
    """
    import typer

    from sandbox.cli.app import app

    # Typer names only some of the errors that its parser raises.
    usage_error: Any = typer.BadParameter.__base__
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    as_json = "--json" in arguments
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        status = app(arguments, prog_name="stillroom", standalone_mode=False)
    except StillroomError as e:
        return _tell(e.code, str(e), e.hint, e.exit_status, as_json=as_json)
    except usage_error as e:
        context = getattr(e, "ctx", None)
        hint = f"{context.command_path} --help" if context else ""
        return _tell("usage", str(e.format_message()), hint, USAGE, as_json=as_json)
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as e:  # noqa: BLE001 - the boundary: an unknown error is our bug, and loud
        return _unexpected(e, as_json=as_json)
    if status == INTERRUPTED:  # typer makes this of ^C
        hint = "run the same command again to go on"
        return _tell("interrupted", "stopped", hint, INTERRUPTED, as_json=as_json)
    return status if isinstance(status, int) else 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Being told to end is being stopped: the same way out as ^C, which leaves nothing behind."""
    del number, frame
    raise KeyboardInterrupt


def _unexpected(error: Exception, *, as_json: bool) -> int:
    if isinstance(error, OSError) and error.errno in _MACHINE:
        hint = "make room, then run the same command again: it goes on where this one stopped"
        return _tell("machine", str(error), hint, MACHINE, as_json=as_json)
    traceback.print_exception(error)
    hint = "this is a bug of ours: please report it with the lines above"
    return _tell("bug", f"{type(error).__name__}: {error}", hint, OUR_BUG, as_json=as_json)


def _tell(code: str, message: str, hint: str, status: int, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"error": {"code": code, "message": message, "hint": hint}}))
    lines = f"error[{code}]: {message}\n" + (f"  hint: {hint}\n" if hint else "")
    sys.stderr.write(lines)
    return status
