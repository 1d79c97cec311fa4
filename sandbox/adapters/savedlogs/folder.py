"""The logs of a folder, as the harnesses name them, and files of results beside them."""

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from sandbox.errors import UserError

MOST_BYTES = 32 << 20
_TEST_OUTPUT = "test_output.txt"
_ENDS = (".eval.log", ".log", ".txt")
_RESULTS = ("junit.xml", "ctrf.json", "results.json", "output.json")
_RESULTS_OF_ONE = ("TEST-*.xml", "*_output.json")
"""A report for each class, as Maven and Gradle write them; of SWE-bench Pro, one for each model."""
_PACKED = (".gz", ".xz", ".bz2", ".zst", ".zip")
_LIKE_AN_ID = re.compile(r"[A-Za-z0-9_.+-]+__[A-Za-z0-9_.+-]+-\d+")
_DEEPEST, _MOST_FILES = 8, 200_000
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedLog:
    instance_id: str
    path: Path | None
    """None: there are results, and no log."""
    results: tuple[Path, ...] = ()
    run: str = ""
    """Folder and model by which it is told from other logs of the instance; empty if there are none."""


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


_Key = tuple[str, str]
"""Instance, run."""


def find_logs(folder: Path, ids: Collection[str]) -> Found:
    """Raises UserError for what is no folder.

    A log is `<id>/test_output.txt` at any depth, `<id>.<model>.eval.log` or `<id>.log`; results
    are junit.xml, ctrf.json and results.json, below the folder of the id or after it: `<id>.junit.xml`.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder", hint="--logs DIR, with a log for each instance")
    logs: dict[_Key, list[Path]] = {}
    results: dict[_Key, list[Path]] = {}
    odd: list[Odd] = []
    for path in _files(folder):
        key = _whose(path, folder, ids)
        if key is None:
            if why := _why_odd(path, ids):
                odd.append(Odd(where=str(path), why=why))
        elif _is_results(path):
            results.setdefault(key, []).append(path)
        else:
            logs.setdefault(key, []).append(path)
    results = _beside(logs, results)
    for key in [k for k, paths in logs.items() if len(paths) > 1]:
        why = "there is more than one log of it: " + ", ".join(str(p) for p in logs[key])
        odd.append(Odd(where=str(folder), why=why, instance_id=key[0]))
        del logs[key]
        results.pop(key, None)
    found = [_saved(key, logs, results) for key in sorted({*logs, *results})]
    if len({log.instance_id for log in found}) == len(found):
        found = [replace(log, run="") for log in found]
    return Found(logs=tuple(found), odd=tuple(odd))


def _saved(key: _Key, logs: dict[_Key, list[Path]], results: dict[_Key, list[Path]]) -> SavedLog:
    path = logs.get(key, [None])[0]
    return SavedLog(instance_id=key[0], run=key[1], path=path, results=tuple(results.get(key, ())))


def _beside(
    logs: dict[_Key, list[Path]], results: dict[_Key, list[Path]]
) -> dict[_Key, list[Path]]:
    """Results are those of the only log that there is of the instance; without a log, of a model."""
    found: dict[_Key, list[Path]] = {}
    logs_of, results_of = _by_instance(logs), _by_instance(results)
    for key, paths in results.items():
        name, run = key
        others = logs_of.get(name) or [k for k in results_of[name] if k[1].startswith(run)]
        others = [k for k in others if k != key] if key not in logs else [key]
        found.setdefault(others[0] if len(others) == 1 else key, []).extend(paths)
    return found


def _by_instance(keys: Iterable[_Key]) -> dict[str, list[_Key]]:
    found: dict[str, list[_Key]] = {}
    for key in keys:
        found.setdefault(key[0], []).append(key)
    return found


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


def _whose(path: Path, folder: Path, ids: Collection[str]) -> _Key | None:
    """The instance whose id a folder or the file has, and the run: what stands around that id."""
    above = (folder.name, *path.relative_to(folder).parts[:-1])
    if path.name == _TEST_OUTPUT:
        return (above[-1], "/".join(above[1:-1])) if above[-1] in ids else None
    if _is_results(path):
        for depth in range(len(above) - 1, -1, -1):
            if above[depth] in ids:
                model = path.name.removesuffix("output.json").rstrip("_")
                model = model if fnmatchcase(path.name, "*_output.json") else ""
                return above[depth], "/".join(filter(None, (*above[1:depth], model)))
    return _by_its_name(path, above, ids)


def _by_its_name(path: Path, above: tuple[str, ...], ids: Collection[str]) -> _Key | None:
    """Of several ids that a name begins with, the longest."""
    end = next((end for end in (*_ENDS, *_RESULTS) if path.name.endswith(end)), None)
    stem = path.name if end else ""
    while "." in stem:
        stem = stem.rpartition(".")[0]
        if stem in ids:
            model = path.name.removesuffix(end or "")[len(stem) :].strip(".")
            return stem, "/".join(filter(None, (*above[1:], model)))
    return None


def _is_results(path: Path) -> bool:
    return path.name.endswith(_RESULTS) or any(fnmatchcase(path.name, p) for p in _RESULTS_OF_ONE)


def _why_odd(path: Path, ids: Collection[str]) -> str:
    """Why it is not graded, though it has the name of a log; empty if it has not."""
    name = path.name
    if name.endswith(_PACKED):
        plain = path.with_suffix("")
        known = _whose(plain, path.parent, ids) or _why_odd(plain, ids)
        return "it is packed: unpack it first" if known else ""
    of_another = name.endswith(_ENDS) and _LIKE_AN_ID.fullmatch(path.stem)
    if name == _TEST_OUTPUT or name.endswith(".eval.log") or of_another:
        return "no instance of the data set has this name"
    return ""


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
