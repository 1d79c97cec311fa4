"""Compose files of one service: what of them says how a box is made."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from sandbox.adapters.harbor.common import is_idle
from sandbox.adapters.harbor.report import Report
from sandbox.formats.yamlfile import Document

_VARIABLE = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)")
_HARMLESS = {
    "container_name": "a box has a name of its own",
    "hostname": "every box has the same one",
    "ports": "nothing outside reaches a box",
    "expose": "nothing outside reaches a box",
    "restart": "a box that stops is over",
    "stdin_open": "a box always has a terminal",
    "tty": "a box always has a terminal",
    "init": "a box always has one",
    "pull_policy": "nothing is pulled",
    "platform": "boxes are of linux/amd64",
    "networks": "a box has no network",
    "stop_grace_period": "nobody waits for a box",
    "labels": "nobody reads them",
    "shm_size": "what is shared counts as memory",
}
_SIMPLE: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "image": ("image", "image", str),
    "working_dir": ("workdir", "workdir", str),
    "cpus": ("cpus", "limits.cpus", float),
    "mem_limit": ("memory", "limits.memory_mib", str),
}
_TOPS = {"services", "version", "volumes", "networks", "name"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    env: dict[str, str] = field(default_factory=dict)
    workdir: str | None = None
    dockerfile: str = "Dockerfile"
    context: str = "."
    image: str | None = None
    """Where nothing is built."""
    cpus: float | None = None
    memory: str | None = None
    command: str | None = None
    """It does something, and goes on."""


def read_service(
    doc: Document, name: str, known: Mapping[str, str], report: Report, *, needed: bool = True
) -> Service:
    """The service of that name. What it needs and cannot have is refused in the report.

    known: variables that the peer sets. needed: has it to be there?
    """
    data = doc.data if isinstance(doc.data, dict) else {}
    for key in data:
        if key not in _TOPS and not key.startswith("x-"):
            report.refused(f"compose.{key}", "it is not understood", doc.where((key,)))
    services = data.get("services") or {}
    if not isinstance(services, dict):
        report.refused("compose.services", "it is not understood", doc.where(("services",)))
        return Service()
    for other in services:
        if other != name:
            note = "another container beside the agent's is not converted"
            report.refused(f"compose.services.{other}", note, doc.where(("services", other)))
    given = services.get(name)
    if name not in services and not needed:
        return Service()
    if not isinstance(given, dict):
        report.refused(f"compose.services.{name}", "there is no such service", doc.where(()))
        return Service()
    return _Reader(doc, name, known, report).service(given)


class _Reader:
    def __init__(self, doc: Document, name: str, known: Mapping[str, str], report: Report) -> None:
        self._doc = doc
        self._name = name
        self._known = known
        self._report = report

    def service(self, given: Mapping[str, Any]) -> Service:
        found: dict[str, Any] = {}
        for key, value in given.items():
            try:
                found |= dict(self._of(key, value))
            except (TypeError, ValueError, AttributeError, KeyError):
                self._report.refused(self._at(key), "it is not understood", self._where(key))
        if "context" in found:
            found.pop("image", None)
        return Service(**found)

    def _of(self, key: str, value: Any) -> Iterator[tuple[str, Any]]:
        if key in _HARMLESS:
            self._report.dropped(self._at(key), _HARMLESS[key], self._where(key))
        elif key in _SIMPLE:
            mine, note, read = _SIMPLE[key]
            self._report.mapped(self._at(key), note, self._where(key))
            yield mine, read(self._text(value))
        else:
            readers: dict[str, Callable[[str, Any], Iterator[tuple[str, Any]]]] = {
                "build": self._build,
                "environment": self._environment,
                "command": self._command,
                "entrypoint": self._command,
                "volumes": self._volumes,
                "deploy": self._deploy,
            }
            if key in readers:
                yield from readers[key](key, value)
            else:
                self._report.refused(self._at(key), "it is not understood", self._where(key))

    def _build(self, key: str, value: Any) -> Iterator[tuple[str, Any]]:
        self._report.mapped(self._at(key), "image", self._where(key))
        if isinstance(value, str):
            value = {"context": value}
        yield "context", self._place(value.get("context", "."))
        if "dockerfile" in value:
            yield "dockerfile", self._place(value["dockerfile"])
        for inner in value:
            if inner not in ("context", "dockerfile"):
                where = self._where(key, inner)
                self._report.refused(self._at(key, inner), "it is not understood", where)

    def _place(self, value: Any) -> str:
        """Raises ValueError for what lies outside of the task: it may be anything of this machine."""
        place = PurePosixPath(self._text(value))
        if place.is_absolute() or ".." in place.parts:
            raise ValueError(value)
        return str(place)

    def _environment(self, key: str, value: Any) -> Iterator[tuple[str, Any]]:
        found = dict(self._variables(value))
        if found:
            self._report.mapped(self._at(key), f"env: {', '.join(found)}", self._where(key))
        yield "env", found

    def _variables(self, value: Any) -> Iterator[tuple[str, str]]:
        pairs = value.items() if isinstance(value, dict) else (_pair(v) for v in value or ())
        for name, said in pairs:
            text = "" if said is None else str(said)
            if any((hit[1] or hit[3] or "") in self._known for hit in _VARIABLE.finditer(text)):
                self._report.dropped(
                    self._at("environment", name),
                    "a place of the peer's own",
                    self._where("environment"),
                )
                continue
            yield name, self._text(text)

    def _command(self, key: str, value: Any) -> Iterator[tuple[str, Any]]:
        line = value if isinstance(value, str) else " ".join(map(str, value or ()))
        if is_idle(line):
            self._report.mapped(
                self._at(key), "a box stays until it is destroyed", self._where(key)
            )
        else:
            yield "command", line

    def _volumes(self, key: str, value: Any) -> Iterator[tuple[str, Any]]:
        yield from ()
        for i, item in enumerate(value or ()):
            text = str(item)
            where = self._where(key, i)
            if any((hit[1] or hit[3]) in self._known for hit in _VARIABLE.finditer(text)):
                self._report.dropped(self._at(key), "logs of the peer's own", where)
            else:
                self._report.refused(self._at(key), f"`{text}` is of the peer's machine", where)

    def _deploy(self, key: str, value: Any) -> Iterator[tuple[str, Any]]:
        self._report.mapped(self._at(key), "limits", self._where(key))
        limits = ((value or {}).get("resources") or {}).get("limits") or {}
        if "cpus" in limits:
            yield "cpus", float(limits["cpus"])
        if "memory" in limits:
            yield "memory", str(limits["memory"])

    def _text(self, value: Any) -> str:
        return (
            _VARIABLE.sub(lambda hit: hit[2] or "", str(value)) if "$" in str(value) else str(value)
        )

    def _at(self, *keys: str) -> str:
        return ".".join(("compose.services", self._name, *keys))

    def _where(self, *loc: str | int) -> str:
        return self._doc.where(("services", self._name, *loc))


def _pair(said: Any) -> tuple[str, str]:
    name, _, value = str(said).partition("=")
    return name, value
