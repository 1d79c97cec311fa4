"""The documentation says what the code says, leads somewhere, and holds code that parses."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ci import docs

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> Iterator[tuple[str, str]]:
    for indent, language, body in FENCE.findall(path.read_text(encoding="utf-8")):
        yield language, "\n".join(line.removeprefix(indent) for line in body.splitlines())


def parse(language: str, body: str) -> None:
    match language:
        case "python":
            ast.parse(body)
        case "json":
            json.loads(body)
        case "jsonl":
            for line in body.splitlines():
                json.loads(line)
        case "yaml":
            yaml.safe_load(body)
        case _:
            pass


@pytest.mark.parametrize("path", sorted(docs.pages()), ids=name)
def test_generated_pages_are_up_to_date(path: Path):
    assert path.read_text(encoding="utf-8") == docs.pages()[path], "run ci/docs.py"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_relative_links_lead_to_files(path: Path):
    prose = FENCE.sub("", path.read_text(encoding="utf-8"))
    links = [link for link in LINK.findall(prose) if "://" not in link and link[0] != "#"]
    lost = [link for link in links if not (path.parent / link.partition("#")[0]).exists()]
    assert lost == []


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_code_blocks_parse(path: Path):
    for language, body in blocks(path):
        parse(language, body)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_fence_is_closed_and_names_its_language(path: Path):
    text = path.read_text(encoding="utf-8")
    assert text.count("```") == 2 * len(FENCE.findall(text))


@pytest.mark.parametrize(
    ("language", "body"), [("python", "def"), ("json", "{"), ("jsonl", "{}\n{"), ("yaml", "a: ]")]
)
def test_a_block_that_does_not_parse_is_noticed(language: str, body: str):
    with pytest.raises((SyntaxError, ValueError, yaml.YAMLError)):
        parse(language, body)
