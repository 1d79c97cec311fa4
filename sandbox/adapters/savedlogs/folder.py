"""The logs of a folder, as the harnesses name them, and files of results beside them."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import UserError

MOST_BYTES = 32 << 20
_TEST_OUTPUT = "test_output.txt"
_ENDS = (".eval.log", ".log", ".txt")
_RESULTS = ("junit.xml", "ctrf.json", "results.json", "output.json")
_DEEPEST, _MOST_FILES = 8, 200_000
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedLog:
    instance_id: str
    path: Path | None
    """None: there are results, and no log."""
    results: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """A file of the folder that is not graded."""

    where: str
    why: str
    instance_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    logs: tuple[SavedLog, ...]
    odd: tuple[Odd, ...]


class TooLarge(ValueError):
    """The file is larger than anything that tests have a reason to print."""


def find_logs(folder: Path, ids: Collection[str]) -> Found:
    """Raises UserError for what is no folder.

    A log is `<id>/test_output.txt` at any depth, `<id>.<model>.eval.log` or `<id>.log`; results
    are junit.xml, ctrf.json and results.json, in the folder of the id or after it: `<id>.junit.xml`.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder", hint="--logs DIR, with a log for each instance")
    logs: dict[str, list[Path]] = {}
    results: dict[str, list[Path]] = {}
    odd: list[Odd] = []
    for path in _files(folder):
        name = _whose(path, ids)
        if name is None:
            if _is_of_unknown(path):
                odd.append(Odd(where=str(path), why="no instance of the data set has this name"))
        elif _is_results(path):
            results.setdefault(name, []).append(path)
        elif path.name == _TEST_OUTPUT or path.name.endswith(_ENDS):
            logs.setdefault(name, []).append(path)
    for name in [n for n, paths in logs.items() if len(paths) > 1]:
        why = "there is more than one log of it: " + ", ".join(str(p) for p in logs[name])
        odd.append(Odd(where=str(folder), why=why, instance_id=name))
        del logs[name]
        results.pop(name, None)
    names = sorted({*logs, *results})
    return Found(
        logs=tuple(_saved(name, logs, results) for name in names),
        odd=tuple(odd),
    )


def _saved(name: str, logs: dict[str, list[Path]], results: dict[str, list[Path]]) -> SavedLog:
    path = logs.get(name, [None])[0]
    return SavedLog(instance_id=name, path=path, results=tuple(results.get(name, ())))


def _files(folder: Path) -> Iterator[Path]:
    """Symbolic links are not followed: a folder of logs may be anybody's."""
    count = 0
    for at, folders, files in os.walk(folder, onerror=_fail):
        here = Path(at)
        folders.sort()
        if len(here.relative_to(folder).parts) >= _DEEPEST:
            folders.clear()
        for name in sorted(files):
            count += 1
            if count > _MOST_FILES:
                raise UserError(f"{folder} has more than {_MOST_FILES} files", hint="grade a part")
            yield here / name


def _fail(error: OSError) -> None:
    raise UserError(f"{error.filename}: cannot be read: {error.strerror}")


def _whose(path: Path, ids: Collection[str]) -> str | None:
    """The instance whose id the folder or the file has; of several that fit, the longest."""
    if path.name == _TEST_OUTPUT or path.name in _RESULTS:
        return path.parent.name if path.parent.name in ids else None
    if not path.name.endswith((*_ENDS, *_RESULTS)):
        return None
    stem = path.name
    while "." in stem:
        stem = stem.rpartition(".")[0]
        if stem in ids:
            return stem
    return None


def _is_results(path: Path) -> bool:
    return path.name.endswith(_RESULTS)


def _is_of_unknown(path: Path) -> bool:
    return path.name == _TEST_OUTPUT or path.name.endswith(".eval.log")


def read_file(path: Path) -> bytes:
    """Raises TooLarge, or UserError for what cannot be read at all."""
    try:
        fd = os.open(path, _FLAGS)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise UserError(f"{path}: no regular file")
            raw = file.read(MOST_BYTES + 1)
    except OSError as e:
        raise UserError(f"{path}: cannot be read: {e.strerror}") from None
    if len(raw) > MOST_BYTES:
        raise TooLarge(f"{path.name} is larger than {MOST_BYTES >> 20} MiB")
    return raw


def read_files(paths: Iterable[Path]) -> list[bytes]:
    return [read_file(path) for path in paths]
