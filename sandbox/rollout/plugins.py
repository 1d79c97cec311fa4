"""Names to runtimes, agents and further tasks. The only module that reads entry points."""

import importlib
import inspect
from collections.abc import Callable
from difflib import get_close_matches
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
    made: Runtime = _make(_find("stillroom.runtimes", name, "runtime"), f"runtime `{name}`", store)
    return made


def known_runtime(name: str) -> None:
    """Raises UserError when there is no runtime of this name."""
    _find("stillroom.runtimes", name, "runtime")


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
        made: Agent = _make(_find("stillroom.agents", kind, "agent"), f"agent `{text}`", argument)
        return made
    found = _find("stillroom.agents", text, "agent", "script:FILE", "shell:COMMAND")
    plain: Agent = _make(found, f"agent `{text}`")
    return plain


def homes() -> list[Path]:
    """Folders with tasks that other distributions bring: entry points of stillroom.suites."""
    return [Path(str(e.load())) for e in entry_points(group="stillroom.suites")]


def _make(factory: Callable[..., Any], what: str, *arguments: object) -> Any:
    """An error inside the factory is its own; one in how it is called is the user's."""
    try:
        inspect.signature(factory).bind(*arguments)
    except TypeError as e:
        raise UserError(f"cannot make {what}: {e}") from e
    return factory(*arguments)


def _find(group: str, name: str, what: str, *more: str) -> Callable[..., Any]:
    found = {e.name: e for e in entry_points(group=group)}
    if entry := found.get(name):
        loaded: Callable[..., Any] = entry.load()
        return loaded
    module, _, attribute = name.partition(":")
    if module and attribute.isidentifier():
        try:
            made: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
        except Exception as e:  # whatever is wrong in a module of the user's
            raise UserError(f"cannot load {what} `{name}`: {e}") from e
        return made
    known = ", ".join((*sorted(found), *more, "package.module:Class"))
    near = get_close_matches(name, found, n=1)
    hint = f"did you mean `{near[0]}`? known: {known}" if near else f"known: {known}"
    raise UserError(f"unknown {what} `{name}`", hint=hint)
