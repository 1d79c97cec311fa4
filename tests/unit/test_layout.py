"""What every file of the repository has to keep to."""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES, MOST_FUNCTION_LINES = 400, 60
DATA_FOLDERS = ("ci", "repos", "task_specs", "verifiers")


def tracked() -> list[Path]:
    """Files that git knows, or will be asked to know."""
    said = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = [ROOT / name for name in said.stdout.decode().split("\0") if name]
    return [p for p in paths if p.is_file()]


FILES = tracked()
SOURCES = [p for p in FILES if p.suffix == ".py" and p.is_relative_to(ROOT / "sandbox")]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("folder", DATA_FOLDERS)
def test_data_folders_are_no_packages(folder: str):
    assert [shown(p) for p in (ROOT / folder).rglob("__init__.py")] == []


def test_data_is_never_imported():
    pattern = re.compile(rf"^\s*(from|import) ({'|'.join(DATA_FOLDERS)}|tests)\b", re.MULTILINE)
    assert [shown(p) for p in SOURCES if pattern.search(p.read_text())] == []


def test_source_files_stay_small():
    sources = [p for p in FILES if p.suffix == ".py"]
    long = {shown(p): n for p in sources if (n := len(p.read_text().splitlines())) > MOST_LINES}
    assert long == {}


def test_functions_stay_small():
    functions = [
        (f"{shown(path)}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert {name: lines for name, lines in functions if lines > MOST_FUNCTION_LINES} == {}


def test_every_module_begins_with_one_sentence_of_purpose():
    without = [
        shown(p) for p in SOURCES if p.name != "_version.py" and not ast.get_docstring(tree_of(p))
    ]
    assert without == []


def test_no_file_names_a_place_of_the_machine_it_was_written_on():
    # In two parts, so that this file is none of them.
    places = re.compile("|".join(("/work/" + "main", "/work/" + "shared", "/work/" + r"h/")))
    found = []
    for path in FILES:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{shown(path)}: {m[0]}" for m in places.finditer(text)]
    assert found == []


def test_there_is_no_finaliser_and_no_work_at_import():
    for path in SOURCES:
        tree = tree_of(path)
        names = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        assert "__del__" not in names, shown(path)
        loops = [n for n in tree.body if isinstance(n, ast.For | ast.While | ast.With)]
        assert loops == [], shown(path)


def test_hidden_tests_are_not_collected_with_ours():
    assert not [
        p for p in FILES if p.name == "conftest.py" and not p.is_relative_to(ROOT / "tests")
    ]
