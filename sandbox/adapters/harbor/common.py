"""What both formats need to be understood."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

from sandbox.adapters.harbor.report import Report
from sandbox.errors import SpecError
from sandbox.formats.dockersteps import (
    Entrypoint,
    Env,
    From,
    Passed,
    Step,
    User,
    Workdir,
    load_steps,
)
from sandbox.runtime.spec import PATH

WORKDIR = "/app"
"""Where a Dockerfile says nothing of it."""
LONGEST_SECONDS = 86400.0
_HOST = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_IDLE = re.compile(
    r"(/bin/|/usr/bin/)?(ba|da)?sh( -l)?|(/bin/)?sleep( .*)?|tail -f /dev/null|(/usr/bin/)?(env|tini)( --)?"
    r"|(/bin/)?sh -c (ba)?sh|(/bin/)?(ba)?sh -c (sleep|tail) .*"
)
"""What keeps a container alive, and does nothing else."""
Difficulty = Literal["easy", "medium", "hard"]


def task_id(name: str) -> str:
    """A name as ours are: of lower case letters, digits, and . _ - within."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")
    return plain[:100] or "task"


def difficulty_of(said: object) -> Difficulty:
    return said if said in ("easy", "hard") else "medium"


def from_host(env: Mapping[str, str], name: str, report: Report, where: str) -> dict[str, str]:
    """Values that a peer takes from the environment of who starts it: here only what is written."""
    found = {}
    for key, value in env.items():
        for asked in _HOST.finditer(value):
            if asked[2] is None:
                note = f"it takes `{asked[1]}` from the machine that starts it"
                report.refused(f"{name}.{key}", note, where)
            else:
                report.changed(f"{name}.{key}", f"`{asked[1]}` is always its default", where)
        found[key] = _HOST.sub(lambda hit: hit[2] or "", value)
    return found


def read_dockerfile(path: Path, report: Report) -> tuple[From | None, tuple[Step, ...]]:
    """Its FROM and its other steps; what is refused is in the report."""
    try:
        first, *rest = load_steps(path)
    except SpecError as e:
        report.refused("Dockerfile", str(e).removeprefix(f"{e.where}: "), e.where)
        return None, ()
    if not isinstance(first, From):
        return None, ()
    for step in rest:
        match step:
            case Passed(word="VOLUME" | "LABEL" | "MAINTAINER" | "EXPOSE" | "STOPSIGNAL"):
                report.dropped(step.word, "it changes no file", step.where)
            case Passed(word="HEALTHCHECK") if step.rest.upper() != "NONE":
                report.dropped(step.word, "nothing waits for it", step.where)
            case Passed(word="CMD") if not is_idle(step.rest):
                note = "it is not run: an agent's shell is what a box starts with"
                report.dropped("CMD", note, step.where)
            case User() if step.name.partition(":")[0] not in ("root", "0"):
                note = f"the agent is root in its box, not `{step.name}`"
                report.changed("USER", note, step.where)
            case _:
                pass
    return first, tuple(rest)


def is_idle(said: str) -> bool:
    line = " ".join(re.findall(r"[^\s\[\]\",']+", said))
    return bool(_IDLE.fullmatch(line))


def workdir_of(steps: tuple[Step, ...], report: Report, where: str) -> str:
    """Where a container of this Dockerfile starts."""
    at = PurePosixPath("/")
    for step in steps:
        if isinstance(step, Workdir):
            at = at / step.path
    found = re.sub(r"/+", "/", "/" + "/".join(p for p in at.parts if p not in ("/", ".")))
    if found == "/":
        report.changed("WORKDIR", f"none is said, or `/`: it is {WORKDIR}", where)
        return WORKDIR
    return found


def env_of(steps: tuple[Step, ...]) -> dict[str, str]:
    """What a Dockerfile adds to the environment."""
    found: dict[str, str] = {}
    for step in steps:
        if isinstance(step, Env):
            found |= step.values
    return {k: v.replace("$PATH", PATH) if k == "PATH" else v for k, v in found.items()}


def entrypoints(steps: tuple[Step, ...]) -> Iterator[Entrypoint]:
    """The last one, if it does something: what is before it was replaced."""
    found = [step for step in steps if isinstance(step, Entrypoint)]
    if found and found[-1].words and not is_idle(" ".join(found[-1].words)):
        yield found[-1]


def limit_seconds(seconds: float, name: str, report: Report, where: str) -> float:
    if seconds > LONGEST_SECONDS:
        report.changed(name, f"{LONGEST_SECONDS:g} s, which is the most", where)
    return min(seconds, LONGEST_SECONDS)


def scripts_in(folder: Path) -> tuple[Path, ...]:
    """Shell scripts of a folder."""
    if not folder.is_dir():
        return ()
    return tuple(sorted(p for p in folder.rglob("*") if p.is_file() and _is_script(p)))


def _is_script(path: Path) -> bool:
    if path.suffix in (".sh", ".bash"):
        return True
    with path.open("rb") as f:
        first = f.readline(200)
    return first.startswith(b"#!") and first.strip().endswith(b"sh")
