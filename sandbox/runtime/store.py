"""The store: everything fetched or built, by content, under the user's cache folder.

blobs/sha256/<hex>       what was downloaded: .debs, wheels, sdists
layers/<hex>.tar         an image layer; layers/<hex>/ the same, unpacked
                         (and layers/<hex>.manifest, to notice a change in it)
images/<hex>.json        an image's config
repos/<name>.git         a pinned repository; trees/<key>/ what a box gets of it
programs/<hex>/          what was built from C here, for this machine
tmp/                     scratch folders, each with a lease of its owner
"""

import errno
import hashlib
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from sandbox.errors import Fault
from sandbox.runtime.lease import Lease, exclusive, orphans

_BUSY_SECONDS, _PAUSE_SECONDS = 30.0, 0.05


class Store:
    def __init__(self, root: Path) -> None:
        self.root = root

    def blob(self, sha256: str) -> Path:
        return self.root / "blobs" / "sha256" / sha256

    def lock(self, name: str) -> AbstractContextManager[None]:
        """One builder of `name` at a time, over all processes that share the store."""
        return exclusive(self.root / "locks" / f"{name}.lock")

    def secret(self) -> bytes:
        """32 random bytes, drawn once for this store and readable by its owner alone."""
        path = self.root / "secret"
        with self.lock("secret"):
            if not path.exists():
                fresh = path.with_name("secret.new")
                fresh.unlink(missing_ok=True)
                with os.fdopen(
                    os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
                ) as f:
                    f.write(secrets.token_bytes(32))
                fresh.replace(path)
            return path.read_bytes()

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A private folder on the store's file system; what is not moved out of it is removed."""
        with Lease.fresh(self.root / "tmp") as lease:
            folder = self.root / "tmp" / lease.name
            folder.mkdir(mode=0o700)
            try:
                yield folder
            finally:
                _clear(folder, lease)

    def reap(self) -> list[str]:
        """Remove the scratch folders of dead owners; never those of live ones."""
        gone = []
        for lease in orphans(self.root / "tmp"):
            with lease:
                _clear(lease.path.with_suffix(""), lease)
                gone.append(str(lease.path.with_suffix("")))
        return gone


def default_store(env: Mapping[str, str]) -> Store:
    """`$STILLROOM_STORE`, or stillroom/ under the XDG cache folder."""
    if path := env.get("STILLROOM_STORE"):
        return Store(Path(path).absolute())
    cache = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME", "/root")) / ".cache")
    return Store(Path(cache) / "stillroom")


def sha256_file(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def check_blob(path: Path, sha256: str, name: str, fault: type[Fault]) -> None:
    """Refuse, by name, a stored file that is not what was pinned."""
    if (found := sha256_file(path)) != sha256:
        raise fault(
            f"refused: {name} is not what was pinned: expected sha256 {sha256}, found {found}",
            hint=f"the stored copy was changed; remove it and run again: rm {path}",
            retry=False,
        )


def remove_tree(path: Path) -> None:
    """Rm -rf that also enters folders their owner made unreadable. Absent is fine.

    Whoever was killed may have had a compiler at work in it, which goes on for a moment.
    """
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return _remove(path)
        except OSError as e:
            if e.errno != errno.ENOTEMPTY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)


def _clear(folder: Path, lease: Lease) -> None:
    """What cannot be removed keeps its lease's file, so that it is found again."""
    try:
        remove_tree(folder)
    except BaseException:
        lease.let_go()
        raise


def _remove(path: Path) -> None:

    def open_up(function: object, name: str, error: BaseException) -> None:
        del function
        if isinstance(error, FileNotFoundError):
            return
        if not isinstance(error, PermissionError):
            raise error
        parent = Path(name).parent
        os.chmod(parent, 0o700)  # noqa: PTH101
        if Path(name).is_dir() and not Path(name).is_symlink():
            os.chmod(name, 0o700)  # noqa: PTH101
            shutil.rmtree(name, onerror=again)
        else:
            Path(name).unlink(missing_ok=True)

    def again(function: object, name: str, error: Any) -> None:
        open_up(function, name, error[1])

    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        try:
            shutil.rmtree(path, onerror=again)
        except (RecursionError, OSError) as e:
            if isinstance(e, OSError) and e.errno not in (errno.EMFILE, errno.ENAMETOOLONG):
                raise
            # An agent can make folders deeper than Python's stack, and than any path is long.
            subprocess.run(["rm", "-rf", "--", str(path)], check=True)
