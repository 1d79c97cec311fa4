"""Names to runtimes, agents and further tasks. The only module that reads entry points."""

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from sandbox.errors import UserError
from sandbox.rollout.agent import Agent
from sandbox.rollout.agents import Scripted
from sandbox.rollout.command import Command
from sandbox.runtime.base import Runtime
from sandbox.runtime.store import Store


def runtime(name: str, store: Store) -> Runtime:
    """`name`: an entry point of stillroom.runtimes, or `package.module:Class`."""
    made: Runtime = _find("stillroom.runtimes", name, "runtime")(store)
    return made


def agent(text: str, store: Store) -> Agent:
    """`text`: script:FILE, shell:COMMAND, an entry point of stillroom.agents, or module:Class.

    What follows an entry point's name and a colon is its argument.
    """
    kind, _, argument = text.partition(":")
    if kind == "script":
        return Scripted(argument)
    if kind == "shell":
        return Command(argument, store)
    known = entry_points(group="stillroom.agents").names
    if argument and kind in known:
        made: Agent = _find("stillroom.agents", kind, "agent")(argument)
        return made
    plain: Agent = _find("stillroom.agents", text, "agent", "script:FILE", "shell:COMMAND")()
    return plain


def homes() -> list[Path]:
    """Folders with tasks that other distributions bring: entry points of stillroom.suites."""
    return [Path(str(e.load())) for e in entry_points(group="stillroom.suites")]


def _find(group: str, name: str, what: str, *more: str) -> Callable[..., Any]:
    found = {e.name: e for e in entry_points(group=group)}
    if entry := found.get(name):
        loaded: Callable[..., Any] = entry.load()
        return loaded
    module, _, attribute = name.partition(":")
    if module and attribute.isidentifier():
        try:
            made: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as e:
            raise UserError(f"cannot load {what} `{name}`: {e}") from e
        return made
    known = ", ".join((*sorted(found), *more, "package.module:Class"))
    raise UserError(f"unknown {what} `{name}`", hint=f"known: {known}")
