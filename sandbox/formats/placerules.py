"""Which paths of the box a task may declare as part of its submission."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from sandbox.formats.patchnames import unsafe
from sandbox.formats.runnerrules import Broken, inside
from sandbox.model.reserved import is_fixed
from sandbox.model.rooted import is_rooted, meet, never, places
from sandbox.model.task import WHOLE

_LOOKED_FOR = frozenset({
    ".cargo", "cargo.toml", "go.mod", "go.work", "node_modules", "package.json", "pyproject.toml",
    "rust-toolchain", "rust-toolchain.toml",
})  # fmt: skip
"""What tools look for in every folder above the one they are in."""
_ELSEWHERE = "as /srv/out, /var/lib/app, or a file or folder of /etc that is the task's own"


def submitted_rules(paths: Sequence[str], workdir: str, env: Mapping[str, str]) -> Iterator[Broken]:
    """env: the task's own variables."""
    for i, path in enumerate(paths):
        if not is_rooted(path):
            if path != WHOLE and not inside(path):
                yield (i,), f"`{path}` does not stay within the working directory", ""
        elif wrong := next(_rooted_wrongs(path, workdir, env), None):
            yield (i,), f"`{path}` {wrong[0]}", wrong[1]


def _rooted_wrongs(path: str, workdir: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is wrong with it, and a hint: what comes first is told."""
    if str(PurePosixPath(path)) != path or unsafe(path, rooted=True):
        yield "is not a plain absolute path", "e.g. /srv/out"
    if meet(path, workdir):
        yield "is not apart from the working directory", "what lies in there has no `/` before it"
    if never(path):
        yield "is no place for a submission: a verdict is made with what is there", _ELSEWHERE
    if is_fixed(path):
        yield "is a name that no submission may have", "it tells a test runner or git what to do"
    above, _, last = path.rpartition("/")
    if last.casefold() in _LOOKED_FOR and workdir.startswith(f"{above}/"):
        yield "is a name that tools look for above the working directory", _ELSEWHERE
    for name, place in places(env):
        if meet(path, place):
            yield f"is not apart from what `env` says in {name}: {place}", _ELSEWHERE
