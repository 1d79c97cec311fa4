"""What a script would install or download: packages by name, and what nobody offline can answer.

Seen in the text alone. It decides what an image is given beforehand; what a script asks for that is
not seen here is refused when it asks.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sandbox.formats.shellwords import Simple, simple_commands

Kind = Literal["apt", "pip", "other"]
_PIP = re.compile(r"(.*/)?pip[23]?(\.\d+)?")
_PYTHON = re.compile(r"(.*/)?python[23]?(\.\d+)?")
VALUED = frozenset({
    "-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f",
    "--find-links", "-t", "--target", "--python", "--prefix", "--root", "--timeout", "--retries",
    "--trusted-host", "--platform", "--progress-bar", "--src", "--cache-dir", "-p", "-w", "--with",
    "--with-requirements", "--from", "--python-version", "--with-editable", "--directory",
    "--project", "--index", "--group", "-o", "--target-release",
})  # fmt: skip
"""Options of these programs that are followed by a value. What answers in a box reads this, too."""
INSTALLERS = re.compile(r"https?://(astral\.sh/uv|(bootstrap\.)?pypa\.io/get-pip|bootstrap\.pypa)")
"""Scripts that install what an image has, or what answers in its stead."""
LOCAL = re.compile(r"(https?://)?(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])([:/]|$)")
_ELSEWHERE = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--index")
_ADDRESSES = ("http://", "https://", "git@", "ssh://", "git://")
_FAR = frozenset({"npm", "npx", "yarn", "pnpm", "gem", "cargo", "go", "conda", "mamba", "poetry"})
_FAR_VERBS = frozenset({"install", "i", "ci", "add", "get", "create", "exec", "dlx"})
PROJECT = re.compile(r"(?!.*\.(whl|gz|zip|txt)$)(\.{1,2}(?=[/\[]|$)|/)[^:$*]*$")
_NEVER = frozenset({"apk", "dnf", "yum", "pacman", "brew", "add-apt-repository", "docker", "snap"})
REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Want:
    kind: Kind
    what: str
    """A package of Debian, a requirement of PyPI, or a command line."""
    where: str
    """file:line"""


Read = Callable[[str], str | None]
"""The text of a file that a script names, if it is known."""


def nothing(name: str) -> None:
    del name


def wants(text: str, path: str, *, read: Read = nothing, first: int = 1) -> Iterator[Want]:
    """Those of a script. `path`: what it is called; `first`: the number of its first line."""
    for command in simple_commands(text, first=first):
        where = f"{path}:{command.line}"
        for kind, what in _of(command, read):
            yield Want(kind, what, where)


def package_of(requirement: str) -> str:
    """Normalised: lower case, single hyphens."""
    found = REQUIREMENT.fullmatch(requirement.strip())
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""


def _of(command: Simple, read: Read) -> Iterator[tuple[Kind, str]]:
    words = command.words
    name, rest = words[0].rpartition("/")[2], list(words[1:])
    if name in ("apt-get", "apt", "aptitude"):
        yield from _apt(rest)
    elif _PIP.fullmatch(words[0]):
        yield from _pip(rest, read)
    elif _PYTHON.fullmatch(words[0]) and rest[:2] == ["-m", "pip"]:
        yield from _pip(rest[2:], read)
    elif name == "uv":
        yield from _uv(rest, read)
    elif name == "uvx":
        yield from _uvx(rest, read)
    elif name == "pipx":
        yield from _uvx(rest[1:] if rest[:1] in (["run"], ["install"]) else rest, read)
    elif name in ("bash", "sh", "eval") and rest:
        line = rest[rest.index("-c") + 1 :] if "-c" in rest else rest if name == "eval" else []
        for inner in simple_commands(line[0] if line else ""):
            yield from _of(inner, read)
    else:
        yield from _other(name, rest, " ".join(words))


def _apt(rest: Sequence[str]) -> Iterator[tuple[Kind, str]]:
    given, _ = _split(rest)
    if given[:1] == ["install"]:
        for package in given[1:]:
            if "/" in package or "$" in package:
                yield "other", f"apt-get install {package}"
            else:
                yield "apt", package.partition("=")[0]


def _pip(rest: Sequence[str], read: Read) -> Iterator[tuple[Kind, str]]:
    given, options = _split(rest)
    if given[:1] != ["install"]:
        return
    for word in given[1:]:
        if is_local(word):
            yield from _project(word, read)
        else:
            yield from _requirements([word])
    yield from _by_options(options, read)


def is_local(word: str) -> bool:
    """A folder with a project, as `.`, `./lib[extra]` or /app."""
    return bool(PROJECT.match(word))


def _project(word: str, read: Read) -> Iterator[tuple[Kind, str]]:
    """What a project needs to be built and to run, as its pyproject.toml says."""
    folder, _, extras = word.partition("[")
    try:
        data = tomllib.loads(read(f"{folder.rstrip('/')}/pyproject.toml") or "")
        asked = list(data.get("build-system", {}).get("requires", ["setuptools"]))
        asked += data["project"].get("dependencies", [])
        optional = data["project"].get("optional-dependencies", {})
        for extra in filter(None, extras.rstrip("]").split(",")):
            asked += optional[extra.strip()]
        if "setuptools" in [package_of(one) for one in asked]:
            asked.append("wheel")
    except (tomllib.TOMLDecodeError, KeyError, AttributeError, TypeError):
        yield "other", f"pip install {word}"
        return
    yield from _requirements(asked)


def _requirements(given: Sequence[str]) -> Iterator[tuple[Kind, str]]:
    for word in given:
        if word.startswith((".", "/", "-", "~")) or "://" in word or "$" in word or "@" in word:
            yield "other", f"pip install {word}"
        elif word and not word.startswith((">", "<", "2>")):
            yield "pip", word


def _by_options(options: Sequence[tuple[str, str]], read: Read) -> Iterator[tuple[Kind, str]]:
    for name, value in options:
        if name in ("-r", "--requirement", "--with-requirements"):
            text = read(value)
            if text is None:
                yield "other", f"pip install -r {value}"
            else:
                yield from _of_file(text)
        elif name in ("-w", "--with"):
            yield from _requirements(value.split(","))
        elif name in _ELSEWHERE and not value.rstrip("/").endswith("pypi.org/simple"):
            yield "other", f"pip install {name} {value}"


def _of_file(text: str) -> Iterator[tuple[Kind, str]]:
    for raw in text.splitlines():
        line = raw.partition(" #")[0].strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("-") or "://" in line:
            yield "other", f"pip install {line}"
        else:
            yield "pip", line.partition(" --hash")[0].strip().rstrip("\\").strip()


def _uv(rest: Sequence[str], read: Read) -> Iterator[tuple[Kind, str]]:
    match list(rest):
        case ["pip", *more]:
            yield from _pip(more, read)
        case ["add", *more]:
            given, options = _split(more)
            yield from _requirements(given)
            yield from _by_options(options, read)
        case ["tool", "run" | "install", *more]:
            yield from _uvx(more, read)
        case ["run", *more]:
            _, options = _split(more, to_first=True)
            yield from _by_options(options, read)
        case ["sync" | "lock" | "export" | "build", *_]:
            yield "other", "uv " + " ".join(rest)
        case _:
            pass


def _uvx(rest: Sequence[str], read: Read) -> Iterator[tuple[Kind, str]]:
    given, options = _split(rest, to_first=True)
    yield from _by_options(options, read)
    named = [value for name, value in options if name == "--from"]
    tool = named or given[:1]
    yield from _requirements([t.replace("@latest", "").replace("@", "==") for t in tool])


def _split(
    rest: Sequence[str], *, to_first: bool = False
) -> tuple[list[str], list[tuple[str, str]]]:
    """Arguments, and options with their values. to_first: what comes after one is another's."""
    given: list[str] = []
    options: list[tuple[str, str]] = []
    words = iter(rest)
    for word in words:
        if word.startswith("-") and word != "-":
            name, equals, value = word.partition("=")
            if not equals and name in VALUED:
                value = next(words, "")
            options.append((name, value))
        elif re.match(r"\d?[<>]", word):
            if re.fullmatch(r"\d?[<>]+", word):
                next(words, "")
        else:
            given.append(word)
            if to_first:
                given += words
    return given, options


def _other(name: str, rest: Sequence[str], line: str) -> Iterator[tuple[Kind, str]]:
    if name in _NEVER or name == "npx" or (name in _FAR and _FAR_VERBS & set(rest[:2])):
        yield "other", line
    elif name in ("curl", "wget"):
        far = [w for w in rest if w.startswith(("http://", "https://", "ftp://"))]
        if any(not LOCAL.match(w) and not INSTALLERS.match(w) for w in far):
            yield "other", line
    elif name == "git" and rest[:1] in (["clone"], ["fetch"], ["pull"]) and _is_far(rest):
        yield "other", line


def _is_far(words: Sequence[str]) -> bool:
    return any(w.startswith(_ADDRESSES) for w in words)
