from pathlib import Path

import pytest

from sandbox.errors import SpecError
from sandbox.formats import tomlfile

TEXT = '''schema_version = "1.4"
# a comment
[task]
name = "a/b" # another
authors = [
  {name = "x"},
]
[[steps]]
name = "one"
[steps.agent]
timeout_sec = 3
[[steps]]
name = """
two
[no.table]
key = 1
"""
[metadata]
day = 2024-01-01
"q.x".y = 'a # b'
'''


def write(folder: Path, text: str) -> Path:
    path = folder / "task.toml"
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_value_knows_its_line(tmp_path, newline):
    found = tomlfile.open_document(write(tmp_path, TEXT.replace("\n", newline)))
    lines = {
        ("schema_version",): 1,
        ("task",): 3,
        ("task", "name"): 4,
        ("task", "authors", 0, "name"): 5,
        ("steps", 0, "agent", "timeout_sec"): 11,
        ("steps", 1, "name"): 13,
        ("metadata", "day"): 19,
        ("metadata", "q.x", "y"): 20,
    }
    assert {loc: int(found.where(loc).rpartition(":")[2]) for loc in lines} == lines


def test_a_date_is_text(tmp_path):
    found = tomlfile.open_document(write(tmp_path, TEXT))
    assert found.data["metadata"]["day"] == "2024-01-01"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\nb = nan\n", "task.toml:2: `b` is no number"),
        ("a = 1\na = 2\n", "task.toml:2: not valid TOML"),
        ("a = [1,\n", "not valid TOML"),
        ("\ufeffa = 1\n", "task.toml:1: not valid TOML"),
        ("a = " + "[" * 60 + "]" * 60 + "\n", "nested too deeply"),
    ],
)
def test_what_is_no_toml_is_refused_with_its_line(tmp_path, text, said):
    with pytest.raises(SpecError, match=r".") as e:
        tomlfile.open_document(write(tmp_path, text))
    assert said in str(e.value)
