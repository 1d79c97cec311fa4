"""Which images a Dockerfile starts from, and what it is with others in their place."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import SpecError
from sandbox.formats.dockerfile import Base, canonical, rewritten


class Asked(list[Base]):
    """Puts `ours:1` in place of everything, and remembers what it was asked."""

    def __call__(self, base: Base) -> str:
        self.append(base)
        return "ours:1"


def rewrite(tmp_path: Path, text: str, **args: str) -> tuple[list[str], list[tuple[str, int]]]:
    """The lines, and what was asked for, with its line."""
    path = tmp_path / "Dockerfile"
    path.write_text(text)
    asked = Asked()
    lines = rewritten(path, args, asked).splitlines()
    return lines, [(base.name, int(base.where.rpartition(":")[2])) for base in asked]


@pytest.mark.parametrize(
    ("text", "image", "fresh"),
    [
        ("FROM ubuntu:24.04", "ubuntu:24.04", "FROM ours:1"),
        ("from  ubuntu  as  Base", "ubuntu", "FROM ours:1 AS Base"),
        ("FROM --platform=linux/amd64 a/b AS x", "a/b", "FROM ours:1 AS x"),
        ("FROM --platform=$BUILDPLATFORM a/b", "a/b", "FROM ours:1"),
        ("FROM a/b-${TARGETARCH}:1", "a/b-amd64:1", "FROM ours:1"),
        ("ARG V=24.04\nFROM ubuntu:$V", "ubuntu:24.04", "FROM ours:1"),
        ("ARG V=1\nARG I=a:${V}\nFROM ${I}", "a:1", "FROM ours:1"),
        ("ARG V=\"24.04\" W='x'\nFROM u-$W:${V}", "u-x:24.04", "FROM ours:1"),
        ("FROM ubuntu:${V:-22.04}", "ubuntu:22.04", "FROM ours:1"),
        ("ARG V\nFROM ubuntu:${V:-22.04}", "ubuntu:22.04", "FROM ours:1"),
        ("ARG V=1\nFROM ubuntu${V:+:8}", "ubuntu:8", "FROM ours:1"),
        ("# syntax=docker/dockerfile:1\n\n# note\nFROM a", "a", "FROM ours:1"),
    ],
)
def test_what_a_file_starts_from(tmp_path, text, image, fresh):
    lines, asked = rewrite(tmp_path, text)
    assert asked == [(image, len(text.splitlines()))]
    assert lines == [*text.splitlines()[:-1], fresh]


def test_a_build_argument_wins_over_its_default(tmp_path):
    assert rewrite(tmp_path, "ARG V=1\nFROM a:$V", V="2")[1] == [("a:2", 2)]
    assert rewrite(tmp_path, "FROM a:${V:-3}", V="2")[1] == [("a:3", 1)]  # it is not declared


def test_stages_of_the_file_and_scratch_stay(tmp_path):
    text = """\
FROM golang AS Build
RUN make
FROM scratch
COPY --from=build /a /a
COPY --from=0 /b /b
COPY --chown=1:1 --from=nginx:1 /c /c
FROM build
COPY . .
"""
    lines, asked = rewrite(tmp_path, text)
    assert asked == [("golang", 1), ("nginx:1", 6)]
    assert lines[0] == "FROM ours:1 AS Build"
    assert lines[5] == "COPY --chown=1:1 --from=ours:1 /c /c"
    assert [n for n, line in enumerate(lines) if line != text.splitlines()[n]] == [0, 5]


def test_lines_keep_their_numbers(tmp_path):
    text = "FROM \\\n  # why\n  ubuntu \\\n\n  AS x\nRUN echo \\\n  FROM nothing\nFROM debian\n"
    lines, asked = rewrite(tmp_path, text)
    assert asked == [("ubuntu", 1), ("debian", 8)]
    assert lines == ["FROM ours:1 AS x", *[""] * 4, *text.splitlines()[5:7], "FROM ours:1"]


def test_another_escape_character_is_minded(tmp_path):
    text = "# escape=`\nFROM `\n  a\nRUN dir c:\\\nFROM b\n"
    assert rewrite(tmp_path, text)[1] == [("a", 2), ("b", 5)]


def test_a_text_within_the_file_is_no_instruction(tmp_path):
    text = "FROM a\nRUN <<EOF\nFROM no\nEOF\nRUN cat <<-'END' > x\nFROM no\n\tEND\nFROM b\n"
    lines, asked = rewrite(tmp_path, text)
    assert asked == [("a", 1), ("b", 8)]
    assert lines[2] == "FROM no"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("RUN x\n", None, "no FROM"),
        ("\nFROM a b\n", 2, "FROM needs an image, and nothing else"),
        ("FROM\n", 1, "FROM needs an image"),
        ("FROM $V\n", 1, "`$V` is empty"),
        ("FROM --platform=linux/arm64 a\n", 1, "not what images are built for here"),
        ("FROM --what=x a\n", 1, "not what images are built for here"),
        ("FROM a\nRUN <<EOF\nx\n", 2, "does not end"),
    ],
)
def test_what_cannot_be_understood_is_told_with_its_line(tmp_path, text, line, why):
    with pytest.raises(SpecError) as e:
        rewrite(tmp_path, text)
    assert why in str(e.value)
    assert e.value.where == str(tmp_path / "Dockerfile") + (f":{line}" if line else "")


@given(st.text(max_size=200))
def test_no_text_breaks_it(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "Dockerfile"
    path.write_text("FROM a\n" + text, encoding="utf-8", errors="replace")
    with contextlib.suppress(SpecError):
        assert rewritten(path, {}, Asked()).startswith(("FROM ours:1", "#"))


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("ubuntu", "docker.io/library/ubuntu:latest"),
        ("ubuntu:24.04", "docker.io/library/ubuntu:24.04"),
        ("docker.io/ubuntu", "docker.io/library/ubuntu:latest"),
        ("index.docker.io/library/ubuntu:1", "docker.io/library/ubuntu:1"),
        ("a/b", "docker.io/a/b:latest"),
        ("localhost/b", "localhost/b:latest"),
        ("host:5000/b", "host:5000/b:latest"),
        ("ghcr.io/a/b@sha256:1", "ghcr.io/a/b@sha256:1"),
    ],
)
def test_one_image_has_one_name(name, whole):
    assert canonical(name) == whole
