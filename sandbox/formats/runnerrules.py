"""What `run`, `options` and `services` of a task may say, for each runner."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from sandbox.model.task import ReadySpec, Runner, ServiceSpec

Broken = tuple[tuple[str | int, ...], str, str]
"""Where, what, hint."""

OPTIONS: dict[Runner, frozenset[str]] = {
    "unittest": frozenset({"pattern"}),
    "shell": frozenset(),
    "node": frozenset({"conditions", "import", "loader", "require"}),
    "go": frozenset({"mod", "tags"}),
    "cargo": frozenset({"features", "package", "profile"}),
}
"""Of pytest, any: they are its own ini options."""
_WHOLE: dict[Runner, tuple[str, ...]] = {"go": (".", "./..."), "cargo": (".",)}
_MODULE = re.compile(r"[^\W\d]\w*")
_SERVICE = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_LONGEST_SECONDS = 86400


def inside(path: str) -> bool:
    """A plain relative path: no `..`, not `.git`, not empty, no trailing slash, no NUL."""
    parts = PurePosixPath(path).parts
    plain_path = str(PurePosixPath(path)) == path and not path.startswith(("/", "-"))
    plain_path = plain_path and "\0" not in path
    return plain_path and path != "." and ".." not in parts and parts[0] != ".git"


def run_rules(runner: Runner, run: tuple[str, ...], options: dict[str, str]) -> Iterator[Broken]:
    for i, path in enumerate(run):
        if path in _WHOLE.get(runner, ()):
            continue
        if not inside(path):
            yield ("run", i), f"`{path}` does not stay within the working directory", ""
        elif wrong := _not_run(runner, path):
            yield ("run", i), f"`{path}` {wrong[0]}", wrong[1]
    known = OPTIONS.get(runner)
    for name, value in options.items():
        if known is not None and name not in known:
            hint = f"it knows {', '.join(sorted(known))}" if known else "it knows none"
            yield ("options", name), f"runner `{runner}` has no option `{name}`", hint
        elif "\0" in value:
            yield ("options", name), f"`{name}` holds a NUL", ""


def _not_run(runner: Runner, path: str) -> tuple[str, str] | None:
    """What is wrong with a path for this runner, and a hint."""
    parts = PurePosixPath(path).parts
    if runner == "unittest" and not all(_MODULE.fullmatch(p.removesuffix(".py")) for p in parts):
        return "cannot be imported as a module", "each part of it has to be a Python name"
    one_crate = path == "src" or (parts[-1].endswith(".rs") and parts[-2:-1] == ("tests",))
    if runner == "cargo" and not one_crate:
        return "is nothing that cargo tests", "`.` for all, `src`, or a file like tests/it.rs"
    return None


def service_rules(services: tuple[ServiceSpec, ...]) -> Iterator[Broken]:
    names: set[str] = set()
    for i, service in enumerate(services):
        at = ("services", i)
        if not _SERVICE.fullmatch(service.name):
            hint = "lower case letters, digits, - _"
            yield (*at, "name"), f"`{service.name}` is no name of a service", hint
        if service.name in names:
            yield (*at, "name"), f"there is another service `{service.name}`", "rename one of them"
        names.add(service.name)
        if not service.run.strip() or "\0" in service.run:
            yield (*at, "run"), "should be a command line", "e.g. python3 -m server --port 8080"
        if not 0 < service.seconds <= _LONGEST_SECONDS:
            yield (*at, "seconds"), f"should be between 0 and {_LONGEST_SECONDS}", ""
        for j, path in enumerate(service.writable):
            if not inside(path):
                where = (*at, "writable", j)
                yield where, f"`{path}` does not stay within the working directory", ""
        yield from (
            ((*at, "ready", *loc), message, hint)
            for loc, message, hint in _ready_rules(service.ready, service.seconds)
        )


def _ready_rules(ready: ReadySpec, most: float) -> Iterator[Broken]:
    if sum(v is not None for v in (ready.port, ready.path, ready.seconds)) != 1:
        yield (), "needs one of `port`, `path` and `seconds`", "e.g. {port: 8080}"
    if ready.port is not None and not 0 < ready.port < 1 << 16:
        yield ("port",), "should be between 1 and 65535", ""
    if ready.path is not None and (not ready.path.startswith("/") or "\0" in ready.path):
        yield ("path",), f"`{ready.path}` is not an absolute path", "e.g. /tmp/app.sock"
    if ready.seconds is not None and not 0 <= ready.seconds < most:
        yield ("seconds",), f"should be less than the service's `seconds`, {most:g}", ""
