"""What FROM stands for here: an image of ours, with Debian's packages in place of what is not there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.formats.dockerfile import canonical

BASE = "python-3.11"
"""Debian bookworm with its Python: what the others are made on."""
_DEV = ("build-essential", "ca-certificates", "curl", "wget")
_FAMILIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"library/(debian|ubuntu):.*(windows|alpine).*", ("!",)),
    (r"library/debian:.*", ()),
    (r"library/ubuntu:.*", ()),
    (r"library/python:.*(alpine|windows).*", ("!",)),
    (r"library/python:(3|3\.\d+|latest|slim|bookworm)([.-].*)?", ()),
    (r"library/buildpack-deps:.*", _DEV),
    (r"library/gcc:.*", ("build-essential",)),
    (r"library/node:(?!.*alpine).*", ("nodejs", "npm")),
    (r"library/golang:(?!.*alpine).*", ("golang-go",)),
    (r"library/rust:(?!.*alpine).*", ("rustc", "cargo")),
    (r"library/perl:.*", ("perl",)),
    (r"library/ruby:(?!.*alpine).*", ("ruby",)),
    (r"library/(openjdk|eclipse-temurin):.*", ("default-jdk-headless",)),
    (r"laude-institute/t-bench/(ubuntu|debian|python)-[\w.-]+:.*", ()),
    (r"astral-sh/uv:.*(python3|debian|bookworm|trixie).*", ()),
)
"""Names without their host → packages that such an image has, and ours has not."""
_EXACT = re.compile(r"library/(debian:(bookworm|12)([.-].*)?|python:3\.11([.-].*)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFound:
    name: str
    """Of repos/images/."""
    debs: tuple[str, ...] = ()
    exact: bool = False
    """Is it the same release, too?"""


def base_of(image: str, table: Mapping[str, str]) -> BaseFound | None:
    """table: what a person has decided, name → image of repos/images. None: it is not known."""
    for name, ours in table.items():
        if image == name or canonical(image) == canonical(name):
            return BaseFound(name=ours, exact=True)
    bare = canonical(image.partition("@")[0]).partition("/")[2]
    bare = bare.removeprefix("docker/") if bare.startswith("docker/library/") else bare
    for pattern, debs in _FAMILIES:
        if re.fullmatch(pattern, bare):
            if debs == ("!",):
                return None
            return BaseFound(name=BASE, debs=debs, exact=bool(_EXACT.fullmatch(bare)))
    return None
