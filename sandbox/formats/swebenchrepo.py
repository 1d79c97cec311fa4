"""A task repository of SWE-bench 5.x: sweb.yaml, and one folder for each instance under tasks/."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandbox.errors import SpecError
from sandbox.formats import yamlfile
from sandbox.formats.jsonfile import decode
from sandbox.formats.rowsfile import Row

_TEXTS = {
    "problem_statement.md": "problem_statement", "hints.md": "hints_text", "gold.patch": "patch",
    "test.patch": "test_patch", "eval.sh": "eval_script", "Dockerfile": "instance_dockerfile",
}  # fmt: skip
"""File → key of a row. A file that is not there is a key that is not there."""
_LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS", "fail_to_pass", "pass_to_pass")


def is_task_repository(path: Path) -> bool:
    return (path / "tasks").is_dir()


def read_task_repository(path: Path) -> Iterator[Row]:
    """Each instance as a row, in the order of their names. Raises SpecError for what has none."""
    folders = sorted(p for p in (path / "tasks").iterdir() if not p.name.startswith("."))
    if not folders:
        raise SpecError("there is no task in it", where=str(path / "tasks"))
    for folder in folders:
        where = str(folder)
        try:
            yield Row(where, _row(folder), key=folder.name)
        except SpecError as e:
            why = str(e).removeprefix(f"{where}: ").removeprefix(f"{where}/")
            yield Row(where, None, why, folder.name)


def _row(folder: Path) -> dict[str, Any]:
    if folder.is_symlink() or not folder.is_dir():
        raise SpecError("not a folder", where=str(folder))
    found = _task(_own(folder, "task.yaml"))
    found |= _tests(_own(folder, "tests.json"))
    for file, key in _TEXTS.items():
        if (folder / file).exists() or (folder / file).is_symlink():
            found[key] = yamlfile.read_text(_own(folder, file))
    if not found.get("image_assets") and (folder / "test_assets").is_dir():
        found["image_assets"] = {"test_patch": [{"path": p} for p in _assets(folder)]}
    return found


def _own(folder: Path, name: str) -> Path:
    """A file of this folder, and none that a link leads to."""
    path = folder / name
    if path.is_symlink():
        raise SpecError("a link, where a file should be", where=str(path))
    return path


def _task(path: Path) -> dict[str, Any]:
    data = yamlfile.open_document(path).data
    if not isinstance(data, dict):
        raise SpecError("should hold keys and values", where=str(path))
    named = data.get("instance_id")
    if named != path.parent.name:
        raise SpecError(
            f"`instance_id` is {named!r}, and the folder's name another", where=f"{path}"
        )
    return data


def _tests(path: Path) -> dict[str, Any]:
    data = decode(yamlfile.read_text(path).removeprefix("\ufeff"), str(path))
    if not isinstance(data, dict):
        raise SpecError("should be an object with FAIL_TO_PASS and PASS_TO_PASS", where=str(path))
    return {key: data[key] for key in _LISTS if key in data}


def _assets(folder: Path) -> list[str]:
    top = folder / "test_assets"
    return sorted(str(p.relative_to(top)) for p in top.rglob("*") if p.is_file())
