from pathlib import Path

import pytest

from sandbox.errors import SpecError
from sandbox.formats.dockersteps import (
    Copy,
    Entrypoint,
    Env,
    From,
    Passed,
    Run,
    User,
    Workdir,
    load_steps,
)  # fmt: skip

WHOLE = """\
ARG V=12
FROM --platform=linux/amd64 debian:${V} AS base
ENV A=1 B="two words" PATH="/x:$PATH"
ENV OLD style
RUN --mount=type=cache,target=/c apt-get update \\
    # a comment
    && true
RUN ["echo", "a b"]
RUN <<EOF
one
two
EOF
WORKDIR /app/$A
COPY --chown=u:g --chmod=755 a b ./
COPY ["c d", "/e/"]
COPY <<X /f.txt
text $A
X
ADD g.tar /g
USER dev
EXPOSE 80
ENTRYPOINT ["/e.sh", "x"]
"""


def steps(folder: Path, text: str) -> tuple[object, ...]:
    path = folder / "Dockerfile"
    path.write_text(text, encoding="utf-8")
    return load_steps(path)


def test_every_instruction_becomes_a_step_with_its_line(tmp_path):
    found = steps(tmp_path, WHOLE)
    w = [f"{tmp_path}/Dockerfile:{n}" for n in range(30)]
    known = {"V": "12", "A": "1", "B": "two words", "PATH": "/x:$PATH", "OLD": "style"}
    assert found == (
        From(where=w[2], image="debian:12"),
        Env(where=w[3], values={"A": "1", "B": "two words", "PATH": "/x:$PATH"}),
        Env(where=w[4], values={"OLD": "style"}),
        Run(where=w[5], script="apt-get update     && true", known=known),
        Run(where=w[8], script="echo 'a b'", known=known),
        Run(where=w[9], script="one\ntwo", known=known),
        Workdir(where=w[13], path="/app/1"),
        Copy(where=w[14], sources=("a", "b"), target="./", mode=0o755, owner="u:g"),
        Copy(where=w[15], sources=("c d",), target="/e/"),
        Copy(where=w[16], sources=(), target="/f.txt", text="text 1\n"),
        Copy(where=w[19], sources=("g.tar",), target="/g", unpack=True),
        User(where=w[20], name="dev"),
        Passed(where=w[21], word="EXPOSE", rest="80"),
        Entrypoint(where=w[22], words=("/e.sh", "x")),
    )


def test_a_stage_that_is_there_for_uv_is_passed_over(tmp_path):
    text = "FROM ghcr.io/astral-sh/uv:latest AS uv\nFROM debian\nCOPY --from=uv /uv /bin/\n"
    assert steps(tmp_path, text) == (From(where=f"{tmp_path}/Dockerfile:2", image="debian"),)


def runs(folder: Path, text: str) -> list[Run]:
    return [step for step in steps(folder, f"FROM debian\n{text}") if isinstance(step, Run)]


def test_a_line_goes_on_as_it_is_written(tmp_path):
    (run,) = runs(tmp_path, "RUN printf 'a\\n\\\n  b' \\\n# a comment\n  > x\n")
    assert run.script == "printf 'a\\n  b'   > x"


def test_a_text_may_begin_after_a_line_that_goes_on(tmp_path):
    (run,) = runs(tmp_path, "RUN mkdir x && \\\n    cat <<EOF > x/y\none\nEOF\n")
    assert run.script == "mkdir x &&     cat <<EOF > x/y\none\nEOF"


def test_a_text_may_be_a_program_of_another_language(tmp_path):
    (run,) = runs(tmp_path, "RUN <<EOF\n#!/usr/bin/env python3\nprint()\nEOF\n")
    assert "cat > $f <<'STILLROOM_END' && $f\n#!/usr/bin/env python3\nprint()\n" in run.script


def test_a_step_is_run_by_the_shell_that_was_chosen(tmp_path):
    text = 'RUN a\nSHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN b\n'
    assert [run.shell for run in runs(tmp_path, text)] == [
        ("/bin/sh", "-c"), ("/bin/bash", "-o", "pipefail", "-c"),
    ]  # fmt: skip


def test_arguments_are_variables_of_the_steps_that_follow(tmp_path):
    text = 'RUN a\nARG V=1.2 W="x y" TARGETARCH\nENV E=$V W=mine\nRUN b\n'
    one, two = runs(tmp_path, text)
    assert (one.args, two.args) == ({}, {"V": "1.2", "TARGETARCH": "amd64"})
    assert two.known == {"V": "1.2", "W": "mine", "E": "1.2", "TARGETARCH": "amd64"}


def test_words_of_a_value_are_no_arguments(tmp_path):
    (run,) = runs(tmp_path, 'ARG A="b c d" X\nRUN a\n')
    assert run.args == {"A": "b c d", "X": ""}


def test_an_argument_of_the_file_is_none_of_a_stage_unless_it_asks(tmp_path):
    found = steps(tmp_path, "ARG V=12\nFROM debian:$V\nRUN a\nARG V\nRUN b\n")
    assert [step.args for step in found if isinstance(step, Run)] == [{}, {"V": "12"}]


def test_a_stage_that_goes_on_from_the_one_before_is_the_same(tmp_path):
    found = steps(tmp_path, "FROM debian AS base\nRUN a\nFROM Base AS last\nRUN b\n")
    assert [type(step) for step in found] == [From, Run, Run]


def test_what_copy_writes_has_values_unless_its_end_is_in_quotes(tmp_path):
    text = "ENV A=1\nCOPY <<X /a\n$A \\$A\nX\nCOPY <<'X' /b\n$A\nX\nCOPY <<-X /c\n\tc\n\tX\n"
    found = [step.text for step in steps(tmp_path, f"FROM a\n{text}") if isinstance(step, Copy)]
    assert found == ["1 $A\n", "$A\n", "c\n"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RUN x\n", "no FROM"),
        ("FROM a\nFROM b\n", "Dockerfile:2: a Dockerfile of several stages"),
        (
            "FROM a AS x\nFROM x AS y\nRUN z\nFROM x\n",
            "Dockerfile:4: a Dockerfile of several stages",
        ),
        ("FROM a\nCOPY --from=b x y\n", "Dockerfile:2: a copy from `b`"),
        ("FROM a\nADD https://example.org/x /x\n", "Dockerfile:2: `ADD https://example.org/x`"),
        ("FROM a\nRUN --mount=type=secret,id=x y\n", "Dockerfile:2: `--mount=type=secret,id=x`"),
        ("FROM a\nONBUILD RUN x\n", "Dockerfile:2: `ONBUILD` is not supported"),
        ('FROM a\nSHELL ["pwsh"]\n', "Dockerfile:2: SHELL"),
        ("FROM a\nCOPY x\n", "Dockerfile:2: what is to be copied"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(tmp_path, text, said):
    with pytest.raises(SpecError) as e:
        steps(tmp_path, text)
    assert said in str(e.value)
