"""What a data set of the SWE-bench family says of one instance, whatever shape it was written in."""

import re
from dataclasses import dataclass
from typing import Literal

Shape = Literal["4.x", "5.x", "repository", "smith", "pro"]
"""`4.x`: rows of Full, Lite, Verified, Multimodal; `5.x`: rows that bring image and script;
`repository`: a folder of tasks; `smith`: SWE-smith; `pro`: SWE-bench Pro."""
INSTANCE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}")
"""It becomes the name of folders and of files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    instance_id: str
    repo: str
    """owner/name."""
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    shape: Shape
    where: str
    """file:line, file[number] or a folder."""
    base_commit: str = ""
    patch: str = ""
    """The reference solution; if `inverted`, what brings the bug."""
    inverted: bool = False
    test_patch: str = ""
    version: str = ""
    environment_setup_commit: str = ""
    problem_statement: str = ""
    hints: str = ""
    requirements: str = ""
    interface: str = ""
    """Of SWE-bench Pro: what an agent is told beside the statement."""
    created_at: str = ""
    difficulty: str = ""
    split: str = ""
    image: str = ""
    """Of a registry."""
    dockerfile: str = ""
    """Its content."""
    eval_script: str = ""
    log_parser: str = ""
    eval_type: str = ""
    """pass_and_fail or fail_only, where it is said."""
    language: str = ""
    assets: tuple[str, ...] = ()
    """Files that no patch of text can carry, as paths of the repository."""
    given: tuple[str, ...] = ()
    """Names of all fields that were there and not empty."""
    notes: tuple[str, ...] = ()
    """What was odd about it, and how it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A row that could not be read."""

    where: str
    why: str
    instance_id: str = ""
    """If that much could be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    instances: tuple[Instance, ...]
    refused: tuple[Refused, ...] = ()


class RowError(ValueError):
    """What is wrong with a row; the message is for people."""


def is_cut(test: str) -> bool:
    """By the family's own rule, was this id cut at a space? Its bracket then stays open."""
    return test.count("[") > test.count("]")


def ends_open(test: str) -> bool:
    """Was it, as far as can be told? A whole id may hold any brackets, as of a terminal's colours."""
    return is_cut(test) and not test.endswith("]")


def text_of(value: object, key: str) -> str:
    """A field that is text; null is empty. Raises RowError."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RowError(f"`{key}` should be text, and is {kind_of(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise RowError(f"`{key}` holds half a character (a lone surrogate)") from None
    return value


def id_of(value: object) -> str:
    """Raises RowError."""
    name = text_of(value, "instance_id")
    if not name:
        raise RowError("there is no `instance_id`")
    if not INSTANCE_ID.fullmatch(name):
        raise RowError(f"{name[:200]!r} is no id: letters, digits and . _ + - make one")
    return name


def kind_of(value: object) -> str:
    names: dict[type, str] = {
        bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list",
        dict: "an object",
    }  # fmt: skip
    return names.get(type(value), "null")


def with_end(patch: str) -> str:
    """A patch with the end of its last line, which those who strip texts take away."""
    return patch + "\n" if patch.strip() and not patch.endswith("\n") else patch
