"""stillroom lock: make pins anew."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandbox.cli.options import RuntimeName

if TYPE_CHECKING:
    from sandbox.model.task import TaskSpec


class Part(StrEnum):
    CANARIES = "canaries"
    PLAIN = "plain"


class Kind(StrEnum):
    IMAGE = "image"
    REPO = "repo"
    TASK = "task"
    CHECKS = "checks"


What = Annotated[Kind, typer.Argument(help="What is to be pinned.")]
Name = Annotated[str, typer.Argument(help="Its name.")]


Boxes = Annotated[int, typer.Option("--jobs", "-j", min=1, max=16, help="Boxes at once.")]
Wrong = Annotated[
    int, typer.Option(min=0, max=100, help="Wrong solutions that canaries are held against.")
]

Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        help="Find canaries of this file of hidden tests, and keep the others. Repeatable.",
    ),
]
Only = Annotated[Part | None, typer.Option(help="Find this again, and keep the other.")]


def lock(
    what: What,
    name: Name,
    *,
    runtime: RuntimeName = "embedded",
    jobs: Boxes = 2,
    wrong: Wrong = 3,
    only: Only = None,
    file: Files = None,
) -> int:
    """Pin again: an image, a repository, or the hidden tests of a task of this folder.

    An image recipe of repos/images/ is locked to what the archives, or its registry, have today; a
    Dockerfile is built. A repository of repos/lock.yaml is pinned to what its source has. Tasks that pin them are changed too. `checks` finds what the verdicts
    on a task rest on beside its tests: canaries and what a plain run shows. The options are for it.

    \b
    Examples:
      stillroom lock image python-3.11
      stillroom lock repo my-task
      stillroom lock task my-task
      stillroom lock checks my-task
    """
    from sandbox.audit.pins import advice
    from sandbox.cli import options
    from sandbox.cli.progress import ProgressObserver
    from sandbox.errors import UserError
    from sandbox.formats.taskfile import load_task
    from sandbox.runtime.locks import lock_image, lock_repo, lock_task, repin_image
    from sandbox.runtime.supplies import Depot

    if file and only is Part.PLAIN:
        raise UserError("--file is for canaries", hint="leave out --file or --only plain")
    home, store = Path.cwd(), options.store()
    notes: list[str] = []
    if not (home / "repos").is_dir():
        raise UserError(
            f"there is no repos/ in {home}", hint="go to the folder that holds task_specs/"
        )
    if what is Kind.CHECKS:
        return _lock_checks(load_task(home, name), runtime, jobs, wrong, only, file or [])
    with ProgressObserver(quiet=False) as observer:
        if what is Kind.REPO:
            pin, changed = lock_repo(store, home, name)
            said = f"{name} commit {pin.commit} tree {pin.tree}"
        elif what is Kind.TASK:
            task = load_task(home, name)
            changed = lock_task(Depot(store, observer.preparing), task)
            notes = list(advice(task.clock.at, {}))
            said = f"{name}: {'pinned' if changed else 'is pinned already'}"
        else:
            lock = lock_image(store, home, name, observer.preparing)
            changed = repin_image(home, name, lock.config_digest)
            said = f"{name} {lock.config_digest}"
    print(said)
    for note in notes:
        print(f"advice: {note}")
    for path in changed:
        print(f"changed {path}")
    return 0


def _lock_checks(
    task: TaskSpec, runtime: str, jobs: int, wrong: int, only: Part | None, files: list[str]
) -> int:
    from sandbox.audit.canary.find import find_canaries
    from sandbox.audit.canary.pin import find_plain_run, pin_layers, said
    from sandbox.audit.canary.some import merged, narrowed
    from sandbox.cli import options
    from sandbox.cli.progress import ProgressObserver
    from sandbox.model.task import without_layers

    asked = narrowed(task, files) if files else task
    found = plain = canaries = None
    with ProgressObserver(quiet=False) as observer, options.world(runtime, observer) as world:
        depot, place = world.depot, world.runtime
        if only is not Part.PLAIN:
            found = find_canaries(
                asked, depot, place, observer.preparing, jobs=jobs, wrong=wrong, only=files
            )
            canaries = found.canaries
        if canaries and files:
            canaries = merged(task, canaries, files, depot.supply(without_layers(task)))
        if only is not Part.CANARIES:
            plain = find_plain_run(task, depot, place, observer)
    changed = pin_layers(task, canaries, plain)
    for line in said(asked, found) if found else ():
        print(line)
    for path in changed:
        print(f"changed {path}")
    return 0
