"""What `tmpdir` and the factories of temporary folders hand out."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Folders:
    """`tmp_path_factory`, and with Local `tmpdir_factory`."""

    def __init__(self, kind: Any = Path) -> None:
        self._kind = kind
        self._base = tempfile.mkdtemp()

    def mktemp(self, name: str, numbered: bool = True) -> Any:  # noqa: FBT001, FBT002
        folder = Path(self._base, name)
        number = 0
        while numbered and Path(f"{folder}{number}").exists():
            number += 1
        made = Path(f"{folder}{number}") if numbered else folder
        made.mkdir(parents=True)
        return self._kind(made)

    def getbasetemp(self) -> Any:
        return self._kind(self._base)

    def remove(self) -> None:
        shutil.rmtree(self._base, ignore_errors=True)


class Local(os.PathLike[str]):
    """What `tmpdir` is: the part of it that tests use."""

    def __init__(self, path: Any) -> None:
        self._path = Path(path)
        self.strpath = str(path)
        self.basename, self.dirname = self._path.name, str(self._path.parent)

    def __fspath__(self) -> str:
        return self.strpath

    __str__ = __fspath__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, os.PathLike | str) and os.fspath(other) == self.strpath

    def __hash__(self) -> int:
        return hash(self.strpath)

    def join(self, *parts: Any) -> "Local":
        return Local(self._path.joinpath(*(os.fspath(p) for p in parts)))

    __truediv__ = join

    def mkdir(self, *parts: Any) -> "Local":
        made = self.join(*parts)
        Path(made).mkdir()
        return made

    def ensure(self, *parts: Any, dir: bool = False) -> "Local":  # noqa: A002
        made = self.join(*parts)
        (Path(made) if dir else Path(made).parent).mkdir(parents=True, exist_ok=True)
        if not dir:
            Path(made).touch()
        return made

    def write(self, data: Any, mode: str = "w", ensure: bool = False) -> None:  # noqa: FBT001, FBT002
        if ensure:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open(mode if isinstance(data, str) else "wb") as f:
            f.write(data)

    def read(self, mode: str = "r") -> Any:
        with self._path.open(mode) as f:
            return f.read()

    def open(self, mode: str = "r", **told: Any) -> Any:
        return self._path.open(mode, **told)

    def exists(self) -> bool:
        return self._path.exists()

    check = exists

    def listdir(self) -> list["Local"]:
        return [Local(p) for p in sorted(self._path.iterdir())]

    def chdir(self) -> "Local":
        before = Local(os.getcwd())
        os.chdir(self._path)
        return before

    @contextmanager
    def as_cwd(self) -> Iterator["Local"]:
        before = self.chdir()
        try:
            yield before
        finally:
            before.chdir()
