"""Closing while others are still at work: what is being made must not be missed."""

import threading
from typing import Self

from sandbox.errors import RuntimeFault


class Gate:
    """`with gate:` around making something. Once closed, nobody enters, and nobody is inside."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False

    def __enter__(self) -> Self:
        """Raises RuntimeFault when it is closed."""
        with self._changed:
            if self._closed:
                raise RuntimeFault("the runtime has been closed", retry=False)
            self._inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Wait for those inside. Harmless the second time."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0)
