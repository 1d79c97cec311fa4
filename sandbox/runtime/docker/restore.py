"""Puts a snapshot into a container in which nothing has run yet."""

import tarfile
import tempfile
from pathlib import Path
from typing import IO, cast

from sandbox.errors import RuntimeFault
from sandbox.runtime import changeset
from sandbox.runtime.docker.channel import Command
from sandbox.runtime.docker.config import ENGINE_FILES
from sandbox.runtime.docker.container import Container
from sandbox.runtime.docker.engine import faults
from sandbox.runtime.docker.programs import WentDown, run, run_from_outside
from sandbox.runtime.spec import PATH

REMOVED_AT_ONCE = 500
HELP_SECONDS = 120.0
MOST_BYTES = 1 << 20
"""Of one of the engine's files."""


def restore(container: Container, snapshot: Path) -> None:
    """The container runs: its first process comes from the image, not from the snapshot."""
    with tempfile.TemporaryFile() as plain, tempfile.TemporaryFile() as rest:
        removed = [p for p in changeset.split(snapshot, plain) if p not in ENGINE_FILES]
        for start in range(0, len(removed), REMOVED_AT_ONCE):
            ask(container, ["rm", "-rf", "--", *removed[start : start + REMOVED_AT_ONCE]])
        plain.seek(0)
        for path, content in _set_apart(plain, rest).items():
            ask(container, ["sh", "-c", 'cat > "$1"', "sh", path], content)
        rest.seek(0)
        with faults("put the snapshot into the box"):
            container.engine.api.put_archive(container.id, "/", rest)


def ask(container: Container, argv: list[str], content: bytes = b"") -> bytes:
    """What a program of ours prints, in a box in which nothing else has run yet."""
    command = Command(
        argv=argv, env={"PATH": PATH}, cwd="/", user=(0, 0), input=content, output_bytes=4096
    )
    try:
        if container.channel is not None:
            ended = run(container.channel, command, HELP_SECONDS)
        else:
            ended = run_from_outside(container, command, HELP_SECONDS)
    except WentDown as e:
        raise RuntimeFault("the box ended while it was made") from e
    if ended.exit_code != 0:
        raise RuntimeFault(f"cannot run {argv[0]}: {ended.stderr.decode(errors='replace').strip()}")
    return ended.stdout


def _set_apart(plain: IO[bytes], rest: IO[bytes]) -> dict[str, bytes]:
    """Write all but the engine's files to `rest`; returns what is in those."""
    apart = {}
    form = {"encoding": "utf-8", "errors": "surrogateescape"}
    with (
        tarfile.open(fileobj=plain, mode="r:", **form) as source,  # type: ignore[call-overload]
        tarfile.open(fileobj=rest, mode="w", format=tarfile.PAX_FORMAT, **form) as out,  # type: ignore[call-overload]
    ):
        for member in source:
            content = cast(
                "IO[bytes] | None", source.extractfile(member) if member.isreg() else None
            )
            if f"/{member.name}" not in ENGINE_FILES:
                out.addfile(member, content)
            elif content is not None:
                apart[f"/{member.name}"] = content.read(MOST_BYTES)
    return apart
