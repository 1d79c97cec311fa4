"""Requests → lock: the real indexes are asked what they mean today, by their own resolvers.

None of them sees this machine's configuration, nor what is installed on it; apt sees what is
installed in the image. Addresses are written down as the index itself has them, never a mirror's.
"""

from dataclasses import dataclass, fields

from sandbox.errors import UserError
from sandbox.formats.indexfile import ordered
from sandbox.model.index import IndexHead, IndexLock, Pin, moment
from sandbox.runtime.image.build import Progress
from sandbox.runtime.image.layout import ARCH, PYTHON
from sandbox.runtime.network.index.resolve_apt import apt_pins
from sandbox.runtime.network.index.resolve_npm import npm_pins
from sandbox.runtime.network.index.resolve_pypi import pypi_pins
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a box should be able to install, each as one would type it."""

    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()


def resolve(
    store: Store, wanted: Wanted, pin: str, image: Image | None, progress: Progress
) -> IndexLock:
    """These and what they depend on. `pin`: the index's date. `image`: the box's, for apt.

    Every file is in the store afterwards. Raises UserError, NetworkFault or ImageFault.
    """
    _check(wanted, pin)
    total = sum(len(getattr(wanted, f.name)) for f in fields(wanted))
    pins: list[Pin] = []
    snapshot = None
    with store.scratch() as scratch:
        progress("resolving for pip", 0, total)
        pins += pypi_pins(store, scratch, wanted.pip, moment(pin))
        progress("resolving for npm", len(wanted.pip), total)
        pins += npm_pins(store, scratch, wanted.npm)
        progress("resolving for apt", total - len(wanted.apt), total)
        if wanted.apt:
            snapshot, debs = apt_pins(store, scratch, wanted.apt, image)
            pins += debs
    head = IndexHead(pin=pin, arch=ARCH, python=PYTHON.removeprefix("python"), snapshot=snapshot)
    return IndexLock(head=head, pins=ordered({p.url: p for p in pins}.values()))


def _check(wanted: Wanted, pin: str) -> None:
    try:
        moment(pin)
    except ValueError:
        hint = "as in 2024-05-15T12:00:00Z"
        raise UserError(f"not a date to pin an index at: {pin}", hint=hint) from None
    for kind in fields(wanted):
        for name in getattr(wanted, kind.name):
            # They end up on a command line: an option is no package.
            if not name.strip() or name.startswith("-") or not name.isprintable():
                raise UserError(f"not a package for {kind.name}: {name!r}")
