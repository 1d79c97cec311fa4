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
    assert found == (
        From(where=w[2], image="debian:12"),
        Env(where=w[3], values={"A": "1", "B": "two words", "PATH": "/x:$PATH"}),
        Env(where=w[4], values={"OLD": "style"}),
        Run(where=w[5], script="apt-get update && true"),
        Run(where=w[8], script="echo 'a b'"),
        Run(where=w[9], script="one\ntwo"),
        Workdir(where=w[13], path="/app/1"),
        Copy(where=w[14], sources=("a", "b"), target="./", mode=0o755, owner="u:g"),
        Copy(where=w[15], sources=("c d",), target="/e/"),
        Copy(where=w[16], sources=(), target="/f.txt", text="text $A\n"),
        Copy(where=w[19], sources=("g.tar",), target="/g", unpack=True),
        User(where=w[20], name="dev"),
        Passed(where=w[21], word="EXPOSE", rest="80"),
        Entrypoint(where=w[22], words=("/e.sh", "x")),
    )


def test_a_stage_that_is_there_for_uv_is_passed_over(tmp_path):
    text = "FROM ghcr.io/astral-sh/uv:latest AS uv\nFROM debian\nCOPY --from=uv /uv /bin/\n"
    assert steps(tmp_path, text) == (From(where=f"{tmp_path}/Dockerfile:2", image="debian"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RUN x\n", "no FROM"),
        ("FROM a\nFROM b\n", "Dockerfile:2: a Dockerfile of several stages"),
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
