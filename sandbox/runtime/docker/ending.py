"""The end of many containers, in a time that has a bound: some may be of those that no engine can end."""

import time
import warnings
from collections.abc import Callable, Sequence

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker.container import GONE_CALLS
from sandbox.runtime.docker.engine import Engine


class Ending:
    """When the time is up nothing more is begun: the next reap finds what is left."""

    def __init__(self, engine: Engine) -> None:
        self._deadline = time.monotonic() + GONE_CALLS * engine.brief_seconds
        self._late = False
        self._left: list[str] = []

    def of(self, name: str, remove: Callable[[], None]) -> bool:
        """Is it gone? As long as nothing was too late, the time is no matter: there may be many."""
        if self._late and time.monotonic() > self._deadline:
            self._left.append(f"container {name}")
            return False
        try:
            remove()
        except RuntimeFault as e:
            self._late = True
            self._left.append(f"container {name}: {e}")
            return False
        return True

    def tell(self, images: Sequence[str]) -> None:
        """Warn of these images and of all that is left."""
        left = [*self._left, *(f"image {name}" for name in images)]
        if left:
            warnings.warn(
                f"the engine did not remove in time: {'; '.join(left)}; `stillroom doctor --reap` does it later",
                RuntimeWarning,
                stacklevel=3,
            )
