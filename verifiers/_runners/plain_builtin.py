"""The fixtures that pytest has itself, as far as hidden tests use them."""

import importlib
import io
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from plain_folders import Folders, Local
from plain_standin import Fixture, Warned

_ABSENT: Any = object()


class MonkeyPatch:
    """Changes things, and puts them back."""

    def __init__(self) -> None:
        self._back: list[Any] = []
        self._folder: str | None = None

    @classmethod
    @contextmanager
    def context(cls) -> Iterator["MonkeyPatch"]:
        made = MonkeyPatch()
        try:
            yield made
        finally:
            made.undo()

    def setattr(self, target: Any, name: Any, value: Any = _ABSENT, raising: bool = True) -> None:  # noqa: FBT001, FBT002
        if isinstance(target, str):
            path, _, attribute = target.rpartition(".")
            target, name, value = _resolved(path), attribute, name
        before = getattr(target, name, _ABSENT)
        if before is _ABSENT and raising:
            raise AttributeError(f"there is no {name}")
        if isinstance(target, type):
            before = target.__dict__.get(name, _ABSENT)
        self._back.append(lambda: _put_back(target, name, before))
        setattr(target, name, value)

    def delattr(self, target: Any, name: Any = None, raising: bool = True) -> None:  # noqa: FBT001, FBT002
        if isinstance(target, str):
            path, _, name = target.rpartition(".")
            target = _resolved(path)
        before = getattr(target, name, _ABSENT)
        if before is _ABSENT:
            if raising:
                raise AttributeError(name)
            return
        self._back.append(lambda: setattr(target, name, before))
        delattr(target, name)

    def setitem(self, mapping: Any, key: Any, value: Any) -> None:
        before = mapping.get(key, _ABSENT)
        self._back.append(lambda: _item_back(mapping, key, before))
        mapping[key] = value

    def delitem(self, mapping: Any, key: Any, raising: bool = True) -> None:  # noqa: FBT001, FBT002
        if key not in mapping:
            if raising:
                raise KeyError(key)
            return
        before = mapping[key]
        self._back.append(lambda: _item_back(mapping, key, before))
        del mapping[key]

    def setenv(self, name: str, value: Any, prepend: str | None = None) -> None:
        text = str(value)
        if prepend and name in os.environ:
            text = text + prepend + os.environ[name]
        self.setitem(os.environ, name, text)

    def delenv(self, name: str, raising: bool = True) -> None:  # noqa: FBT001, FBT002
        self.delitem(os.environ, name, raising)

    def syspath_prepend(self, path: Any) -> None:
        before = list(sys.path)
        self._back.append(lambda: sys.path.__setitem__(slice(None), before))
        sys.path.insert(0, str(path))
        importlib.invalidate_caches()

    def chdir(self, path: Any) -> None:
        before = os.getcwd()
        self._back.append(lambda: os.chdir(before))
        os.chdir(path)

    def undo(self) -> None:
        while self._back:
            self._back.pop()()


def _resolved(path: str) -> Any:
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise ImportError(path)


def _put_back(target: Any, name: str, before: Any) -> None:
    if before is _ABSENT:
        delattr(target, name)
    else:
        setattr(target, name, before)


def _item_back(mapping: Any, key: Any, before: Any) -> None:
    if before is _ABSENT:
        mapping.pop(key, None)
    else:
        mapping[key] = before


def _monkeypatch() -> Iterator[MonkeyPatch]:
    with MonkeyPatch.context() as made:
        yield made


def _tmp_path() -> Iterator[Path]:
    folder = tempfile.mkdtemp()
    yield Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)


class Captured(NamedTuple):
    """What `readouterr` tells."""

    out: Any
    err: Any


class Capture:
    """What was printed since it was last asked."""

    def __init__(self, *, raw: bool = False) -> None:
        self._raw = raw
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        self._told = [0, 0]

    def put(self, file: io.TextIOWrapper, place: int) -> io.TextIOWrapper:
        file.flush()
        text = open(os.dup(self._files[place].fileno()), "wb", buffering=0)  # noqa: SIM115
        return io.TextIOWrapper(text, encoding="utf-8", newline="", write_through=True)

    def descriptor(self, place: int) -> int:
        return self._files[place].fileno()

    def readouterr(self) -> Captured:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return Captured(*(self._since(place) for place in range(2)))

    def _since(self, place: int) -> Any:
        number, began = self._files[place].fileno(), self._told[place]
        data = os.pread(number, max(os.fstat(number).st_size - began, 0), began)
        self._told[place] += len(data)
        return data if self._raw else data.decode("utf-8", "replace").replace("\r\n", "\n")

    @contextmanager
    def disabled(self) -> Iterator[None]:
        yield

    def close(self) -> None:
        for file in self._files:
            file.close()


def _capture(*, raw: bool, descriptors: bool) -> Iterator[Capture]:
    made = Capture(raw=raw)
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (made.put(f, i) for i, f in enumerate(before))  # type: ignore[arg-type]
    kept = [os.dup(1), os.dup(2)] if descriptors else []
    for place, _ in enumerate(kept):
        os.dup2(made.descriptor(place), place + 1)
    try:
        yield made
    finally:
        for place, number in enumerate(kept):
            os.dup2(number, place + 1)
            os.close(number)
        streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = before
        for stream in streams:
            stream.close()
        made.close()


class Log(logging.Handler):
    """`caplog`."""

    def __init__(self) -> None:
        super().__init__(0)
        self.records: list[logging.LogRecord] = []
        self._levels: list[tuple[logging.Logger, int]] = []

    @property
    def handler(self) -> "Log":
        return self

    def emit(self, record: logging.LogRecord) -> None:
        record.message = record.getMessage()
        self.records.append(record)

    @property
    def messages(self) -> list[str]:
        return [r.getMessage() for r in self.records]

    @property
    def text(self) -> str:
        return "".join(f"{r.levelname} {r.name}:{r.getMessage()}\n" for r in self.records)

    @property
    def record_tuples(self) -> list[tuple[str, int, str]]:
        return [(r.name, r.levelno, r.getMessage()) for r in self.records]

    def clear(self) -> None:
        self.records.clear()

    def set_level(self, level: Any, logger: str | None = None) -> None:
        found = logging.getLogger(logger)
        self._levels.append((found, found.level))
        found.setLevel(level)

    @contextmanager
    def at_level(self, level: Any, logger: str | None = None) -> Iterator[None]:
        found = logging.getLogger(logger)
        before = found.level
        found.setLevel(level)
        try:
            yield
        finally:
            found.setLevel(before)

    def undo(self) -> None:
        while self._levels:
            found, level = self._levels.pop()
            found.setLevel(level)


def _caplog() -> Iterator[Log]:
    made = Log()
    root = logging.getLogger()
    root.addHandler(made)
    yield made
    root.removeHandler(made)
    made.undo()


def _recwarn() -> Iterator[Warned]:
    with Warned() as found:
        yield found


def _folders(kind: Any) -> Iterator[Folders]:
    made = Folders(kind)
    yield made
    made.remove()


def _tmpdir(tmp_path: Path) -> Local:
    return Local(tmp_path)


def _capsys() -> Iterator[Capture]:
    yield from _capture(raw=False, descriptors=False)


def _capsysbinary() -> Iterator[Capture]:
    yield from _capture(raw=True, descriptors=False)


def _capfd() -> Iterator[Capture]:
    yield from _capture(raw=False, descriptors=True)


def _tmp_path_factory() -> Iterator[Folders]:
    yield from _folders(Path)


def _tmpdir_factory() -> Iterator[Folders]:
    yield from _folders(Local)


BUILTIN = {
    "monkeypatch": Fixture(_monkeypatch),
    "tmp_path": Fixture(_tmp_path),
    "tmpdir": Fixture(_tmpdir),
    "tmp_path_factory": Fixture(_tmp_path_factory, scope="session"),
    "tmpdir_factory": Fixture(_tmpdir_factory, scope="session"),
    "capsys": Fixture(_capsys),
    "capsysbinary": Fixture(_capsysbinary),
    "capfd": Fixture(_capfd),
    "caplog": Fixture(_caplog),
    "recwarn": Fixture(_recwarn),
}
