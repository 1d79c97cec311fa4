"""Options that several verbs share, and what they stand for."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandbox.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.rollout.catalogue import Catalogue
    from sandbox.rollout.observer import Observer
    from sandbox.rollout.run import World
    from sandbox.runtime.store import Store

Tasks = Annotated[list[str] | None, typer.Argument(help="Task ids or glob patterns.")]
SuiteName = Annotated[str | None, typer.Option("--suite", "-s", help="A named choice of tasks.")]
RuntimeName = Annotated[
    str, typer.Option("--runtime", "-r", help="Where boxes run: embedded or docker.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, help="Rollouts at once.")]
Retries = Annotated[
    int, typer.Option(min=0, max=10, help="Tries after a fault; never after a verdict.")
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="The run's folder; resumed if unfinished.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print data only, as JSON lines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]

RUNS = Path("runs")


def catalogue() -> Catalogue:
    from sandbox.rollout import plugins
    from sandbox.rollout.catalogue import Catalogue, default_homes

    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise UserError("the current folder is gone", hint="cd to one that exists") from None
    return Catalogue(default_homes(here, plugins.homes()))


def store() -> Store:
    from sandbox.runtime.store import default_store

    return default_store(os.environ)


@contextmanager
def world(runtime_name: str, observer: Observer) -> Iterator[World]:
    """A runtime and its supplies; leftovers of dead runs go first, and ours at the end."""
    from sandbox.rollout import plugins
    from sandbox.rollout.run import World
    from sandbox.rollout.suite import reap
    from sandbox.runtime.limits import unheld
    from sandbox.runtime.supplies import Depot

    shelf = store()
    runtime = plugins.runtime(runtime_name, shelf)
    try:
        reap(runtime, shelf)
        if lacks := unheld(runtime.capabilities()):
            observer.noted(lacks)
        yield World(runtime=runtime, depot=Depot(shelf, observer.preparing), observer=observer)
    finally:
        runtime.close()
