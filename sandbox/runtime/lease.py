"""Who owns what: a held flock says that the owner lives; the kernel drops it when it dies."""

import fcntl
import os
import secrets
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from sandbox.errors import RuntimeFault

SUFFIX = ".lease"
_TRIES = 5


class Lease:
    """A locked file. Unlike a process id it cannot be reused, and it works across namespaces."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            os.close(self._fd)
            raise RuntimeFault(f"{path} is held by another run", retry=False) from e
        _HELD.add(self)

    @classmethod
    def fresh(cls, folder: Path) -> "Lease":
        """Under a new random name. One that was taken for an orphan before it was locked is given up."""
        for _ in range(_TRIES):
            try:
                lease = cls(folder / f"{secrets.token_hex(8)}{SUFFIX}")
            except RuntimeFault:
                continue
            if lease.path.exists():
                return lease
            lease.release()
        raise RuntimeFault(f"cannot take a lease in {folder}")

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(SUFFIX)

    def release(self) -> None:
        """Give it up and remove the file. Harmless the second time."""
        if self._fd >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1

    def let_go(self) -> None:
        """Give it up but leave the file: it is an orphan from now on."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.release()


_HELD: weakref.WeakSet[Lease] = weakref.WeakSet()


def _let_go() -> None:
    """In a forked child: a lock is held as long as any copy of its descriptor is open."""
    for lease in list(_HELD):
        lease.let_go()


os.register_at_fork(after_in_child=_let_go)


def orphans(folder: Path) -> Iterator[Lease]:
    """Leases of dead owners, each taken over: the caller cleans up, then releases it."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            lease = Lease(path)
        except (RuntimeFault, FileNotFoundError):
            continue
        if path.exists():
            yield lease
        else:  # released between the listing and the lock: what we hold is a new, empty file
            lease.release()


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait for, then hold, a named lock. The file stays: removing it would let two in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
