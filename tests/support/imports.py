"""Importing rows into a home of one's own."""

from pathlib import Path
from typing import Any

from sandbox.adapters.importing import Converted, ImportReport, NotHere
from sandbox.adapters.swebench import Shelf, import_dataset
from sandbox.formats.taskfile import load_task
from sandbox.model.task import TaskSpec
from sandbox.runtime.store import Store
from tests.support.swebenchrows import write_lines


def a_shelf(folder: Path) -> Shelf:
    store = Store(folder / "store")
    return Shelf(home=folder / "home", store=store, folders=(folder / "clones",))


def imported(shelf: Shelf, *rows: dict[str, Any]) -> ImportReport:
    path = shelf.home.parent / "data.jsonl"
    return import_dataset(write_lines(path, *rows), shelf)


def made(shelf: Shelf, row: dict[str, Any]) -> tuple[Converted, TaskSpec]:
    report = imported(shelf, row)
    assert report.not_here == ()
    (one,) = report.converted
    return one, load_task(shelf.home, one.task)


def refused(shelf: Shelf, row: dict[str, Any]) -> NotHere:
    report = imported(shelf, row)
    assert report.converted == ()
    assert not list(shelf.home.glob("task_specs/*/task.yaml"))
    (one,) = report.not_here
    return one
