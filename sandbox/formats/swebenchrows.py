"""One row of a data set, as an instance. Pure: it looks at no file."""

import json
import re
from collections.abc import Mapping
from typing import Any

from sandbox.formats.swebenchinstance import (
    Instance,
    RowError,
    Shape,
    id_of,
    kind_of,
    text_of,
    with_end,
)
from sandbox.formats.swebenchlists import ids_of

_SMITH = re.compile(r".+__.+\.[0-9a-f]{8}\..+")
_REPO = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_PRO_KEYS = {"selected_test_files_to_run", "before_repo_set_cmd", "dockerhub_tag"}
_OTHERS = {
    "expected_output_json": "R2E-Gym: its tests are no list of ids to pass",
    "fix_patch": "Multi-SWE-bench: each of its repositories has a program of its own to judge it",
    "fixed_tests": "Multi-SWE-bench: each of its repositories has a program of its own to judge it",
}
_TEXTS = {
    "base_commit": "base_commit", "problem_statement": "problem_statement", "hints_text": "hints",
    "difficulty": "difficulty", "split": "split",
    "environment_setup_commit": "environment_setup_commit", "eval_script": "eval_script",
    "log_parser": "log_parser", "eval_type": "eval_type", "repo_language": "language",
    "requirements": "requirements", "interface": "interface",
}  # fmt: skip
"""Key of a row → field of an instance."""
_IMAGES = ("image", "image_name", "docker_image", "dockerhub_tag")


def instance_of(row: Mapping[str, Any], where: str, shape: Shape | None = None) -> Instance:
    """shape: told by the keys if it is not said. Raises RowError."""
    _not_another_kind(row)
    name = id_of(row.get("instance_id"))
    shape = shape or _shape(row, name)
    python = shape == "pro"
    before = ids_of(_either(row, "FAIL_TO_PASS"), "FAIL_TO_PASS", python=python)
    stay = ids_of(_either(row, "PASS_TO_PASS"), "PASS_TO_PASS", python=python)
    both = set(before.names) & set(stay.names)
    notes = [*before.notes, *stay.notes]
    if both:
        notes.append(f"{len(both)} ids stand in both lists: they count as FAIL_TO_PASS")
    texts = {field: text_of(row.get(key), key) for key, field in _TEXTS.items()}
    return Instance(
        instance_id=name,
        repo=_repo(row, name, shape),
        fail_to_pass=before.names,
        pass_to_pass=tuple(t for t in stay.names if t not in both),
        shape=shape,
        where=where,
        patch=with_end(text_of(row.get("patch"), "patch")),
        inverted=shape == "smith",
        test_patch=with_end(text_of(row.get("test_patch"), "test_patch")),
        version=_text_or_number(row.get("version"), "version"),
        created_at=_text_or_number(row.get("created_at"), "created_at"),
        image=next((text_of(row[key], key) for key in _IMAGES if row.get(key)), ""),
        dockerfile=text_of(row.get("instance_dockerfile"), "instance_dockerfile"),
        assets=_assets(row.get("image_assets")),
        given=tuple(key for key, value in row.items() if value not in (None, "", [], {})),
        notes=tuple(notes),
        **texts,
    )


def _not_another_kind(row: Mapping[str, Any]) -> None:
    for key, why in _OTHERS.items():
        if key in row:
            raise RowError(f"a row of {why}")


def _shape(row: Mapping[str, Any], name: str) -> Shape:
    if _PRO_KEYS & row.keys() or "fail_to_pass" in row:
        return "pro"
    # Tables that were put together have every column, and leave it empty.
    if _SMITH.fullmatch(name) and not row.get("test_patch"):
        return "smith"
    return "5.x" if "eval_script" in row or "log_parser" in row else "4.x"


def _either(row: Mapping[str, Any], key: str) -> Any:
    """Under its name in capitals, or as SWE-bench Pro writes it."""
    for name in (key, key.lower()):
        if name in row:
            return row[name]
    raise RowError(f"there is no `{key}`")


def _repo(row: Mapping[str, Any], name: str, shape: Shape) -> str:
    repo = text_of(row.get("repo"), "repo")
    if not repo and shape == "smith":
        repo = name.rpartition(".")[0].rpartition(".")[0].replace("__", "/", 1)
    if not repo:
        raise RowError("there is no `repo`")
    if not _REPO.fullmatch(repo) or {".", ".."} & set(repo.split("/")):
        raise RowError(f"`repo` is {repo[:100]!r}, and should be owner/name")
    return repo


def _text_or_number(value: object, key: str) -> str:
    """Text, or the number that YAML and careless writers make of it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return text_of(value, key)


def _assets(value: Any) -> tuple[str, ...]:
    """Paths of files that only a link tells of; the statement's pictures are no part of a tree."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except (ValueError, RecursionError):
            raise RowError("`image_assets` is text, and no JSON") from None
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise RowError(f"`image_assets` should be an object, and is {kind_of(value)}")
    found: list[str] = []
    for part in ("patch", "test_patch"):
        listed = value.get(part) or ()
        if not isinstance(listed, list | tuple):
            raise RowError(f"`image_assets.{part}` should be a list, and is {kind_of(listed)}")
        for one in listed:
            path = one.get("path") if isinstance(one, dict) else one
            found.append(text_of(path, f"image_assets.{part}"))
    return tuple(dict.fromkeys(path for path in found if path))
