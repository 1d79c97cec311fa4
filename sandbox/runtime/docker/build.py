"""Dockerfiles, built by the engine from what is here: nothing is pulled."""

import re
from collections import deque
from pathlib import Path
from typing import Any

from docker.utils.build import tar

from sandbox.errors import ImageFault
from sandbox.model.image import DockerfileSource
from sandbox.runtime.docker.engine import Engine, faults
from sandbox.runtime.image.build import Progress

NAME = ".stillroom.Dockerfile"
"""What the rewritten one is called within the context, beside the one that is there."""
QUIET_SECONDS = 3600
"""How long a step may say nothing."""
SAID_LINES = 5
_STEP = re.compile(r"Step (\d+)/(\d+) : (.*)")


def build(
    engine: Engine,
    name: str,
    source: DockerfileSource,
    context: Path,
    dockerfile: str,
    told: Progress,
) -> str:
    """The engine's id of the image. `dockerfile`: its text. Raises ImageFault or RuntimeFault."""
    last: deque[str] = deque(maxlen=SAID_LINES)
    made = ""
    with faults(f"build {name}"), _archive(context, dockerfile) as archive:
        lines = engine.api.build(
            fileobj=archive,
            custom_context=True,
            dockerfile=NAME,
            pull=False,
            rm=True,
            forcerm=True,
            buildargs=source.args or {},
            target=source.target,
            network_mode="none" if source.network == "none" else None,
            use_config_proxy=False,
            timeout=QUIET_SECONDS,
            decode=True,
        )
        why = ""
        for line in lines:  # to the end, whatever it says: the connection is used again
            why = str(line.get("error", why))
            made = (line.get("aux") or {}).get("ID", made)
            _tell(name, str(line.get("stream", "")), last, told)
    if why or not made:
        raise _failed(name, source, why or "the engine does not say what it made", last)
    return made


def _archive(context: Path, dockerfile: str) -> Any:
    """A file that is gone once closed."""
    return tar(context, exclude=_ignored(context), dockerfile=(NAME, dockerfile))


def _ignored(context: Path) -> list[str]:
    path = context / ".dockerignore"
    if not path.is_file():
        return []
    lines = (line.strip() for line in path.read_text("utf-8", "surrogateescape").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _tell(name: str, said: str, last: deque[str], told: Progress) -> None:
    for line in said.splitlines():
        if step := _STEP.match(line):
            told(f"building {name}: {step[3]}", int(step[1]) - 1, int(step[2]))
        if line.strip():
            last.append(line.strip())


def _failed(name: str, source: DockerfileSource, why: str, last: deque[str]) -> ImageFault:
    offline = " (the build has no network: `network: default` gives it one)"
    return ImageFault(
        f"cannot build {name}: {why.strip()}",
        hint="its last words: " + " | ".join(last) + (offline if source.network == "none" else ""),
        retry=False,
    )
