"""stillroom lock: make pins anew."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Kind(StrEnum):
    IMAGE = "image"
    REPO = "repo"


What = Annotated[Kind, typer.Argument(help="image: lock a recipe again; repo: find a pin.")]
Name = Annotated[
    str, typer.Argument(help="A recipe of repos/images/, or a name in repos/lock.yaml.")
]


def lock(what: What, name: Name) -> int:
    r"""Lock an image to what the archives have today, or find a repository's commit and tree.

    Tasks that pin the image's old digest are changed to the new one.

    \b
    Examples:
      stillroom lock image python-3.11
      stillroom lock repo click-8.1.3
    """
    from sandbox.cli import options
    from sandbox.cli.progress import ProgressObserver
    from sandbox.errors import SpecError
    from sandbox.formats import jsonfile
    from sandbox.formats.home import bundled_home
    from sandbox.model.image import ImageLock
    from sandbox.runtime.locks import image_lock_path, lock_image, pin_repo, repin

    here = Path.cwd()
    home = here if (here / "repos").is_dir() else bundled_home()
    if what is Kind.REPO:
        pin = pin_repo(options.store(), home, name)
        print(f'commit: "{pin.commit}"\ntree: "{pin.tree}"')
        return 0
    try:
        old = str(jsonfile.load(image_lock_path(home, name), ImageLock).config_digest)
    except SpecError:
        old = ""  # there was none, or none of use
    with ProgressObserver(quiet=False) as observer:
        new = lock_image(options.store(), home, name, observer.preparing)
    print(f"{name} {new.config_digest}")
    for path in repin(home, old, new.config_digest) if old else ():
        print(f"pinned in {path}")
    return 0
