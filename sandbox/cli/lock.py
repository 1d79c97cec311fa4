"""stillroom lock: make pins anew."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Kind(StrEnum):
    IMAGE = "image"
    REPO = "repo"
    TASK = "task"


What = Annotated[Kind, typer.Argument(help="What is to be pinned.")]
Name = Annotated[str, typer.Argument(help="Its name.")]


def lock(what: What, name: Name) -> int:
    """Pin again: an image, a repository, or the hidden tests of a task of this folder.

    An image recipe of repos/images/ is locked to what the archives, or its registry, have today; a
    Dockerfile is built. A repository of repos/lock.yaml is pinned to what its source has. Tasks that pin them are changed too.

    \b
    Examples:
      stillroom lock image python-3.11
      stillroom lock repo my-task
      stillroom lock task my-task
    """
    from sandbox.audit.pins import advice
    from sandbox.cli import options
    from sandbox.cli.progress import ProgressObserver
    from sandbox.errors import UserError
    from sandbox.formats.taskfile import load_task
    from sandbox.runtime.locks import lock_image, lock_repo, lock_task, repin_image
    from sandbox.runtime.supplies import Depot

    home, store = Path.cwd(), options.store()
    notes: list[str] = []
    if not (home / "repos").is_dir():
        raise UserError(
            f"there is no repos/ in {home}", hint="go to the folder that holds task_specs/"
        )
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
