"""The agents that come with us: one that knows, one that does nothing, one that plays a list."""

import base64
import shlex
from collections.abc import Iterable
from pathlib import Path

from sandbox.errors import SpecError, UserError
from sandbox.formats import yamlfile
from sandbox.formats.patchparts import parts
from sandbox.model.step import Action, Observation, Run, Submit
from sandbox.rollout.agent import Opening


class Nop:
    """Submits at once. Its reward is what the task gives for nothing."""

    name = "nop"

    def begin(self, opening: Opening) -> "Script":
        del opening
        return Script(())


class Oracle:
    """Applies the reference solution, through the terminal like everyone else."""

    name = "oracle"

    def begin(self, opening: Opening) -> "Script":
        inner, rooted = parts(opening.reference())
        actions = [Run(f"cd {shlex.quote(opening.workdir)}")]
        if inner or not rooted:
            actions.append(Run(_apply(inner, "")))
        if rooted:
            # `a//srv/x` from the root: all that is before `srv` is stripped.
            actions += [Run("cd /"), Run(_apply(rooted, " -p2"))]
        return Script(actions)


def _apply(patch: bytes, option: str) -> str:
    text = base64.encodebytes(patch).decode()
    return f"base64 -d <<'PATCH' | git apply --whitespace=nowarn{option} -\n{text}PATCH"


class Scripted:
    """Plays the commands of a file, then submits."""

    def __init__(self, argument: str) -> None:
        """`argument`: a YAML list of commands, or any other file with a command a line."""
        if not argument:
            raise UserError("script: needs a file", hint="--agent script:commands.txt")
        self.name = f"script:{Path(argument).name}"
        self._commands = tuple(_commands(Path(argument)))

    def begin(self, opening: Opening) -> "Script":
        del opening
        return Script([Run(c) for c in self._commands])


class Script:
    """A session that plays fixed actions."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self._left = iter(tuple(actions))

    def act(self, seen: Observation) -> Action:
        del seen
        return next(self._left, Submit())

    def close(self) -> None:
        """There is nothing to let go of."""


def _commands(path: Path) -> list[str]:
    if path.suffix in (".yaml", ".yml"):
        document = yamlfile.open_document(path)
        if not isinstance(document.data, list):
            raise SpecError("should be a list of commands", where=str(path))
        for i, command in enumerate(document.data):
            if not isinstance(command, str):
                raise SpecError("a command should be a string", where=document.where((i,)))
        return list(document.data)
    lines = yamlfile.read_text(path).splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]
