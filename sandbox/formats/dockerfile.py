"""Dockerfiles: their instructions, which images they start from, and how to put others in."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SpecError
from sandbox.formats.yamlfile import read_text

SCRATCH = "scratch"
_PLATFORMS = {"linux/amd64", "linux/x86_64", "amd64", "linux"}
"""Names of the one we build for."""
AUTOMATIC = {
    "BUILDARCH": "amd64", "BUILDOS": "linux", "BUILDPLATFORM": "linux/amd64", "TARGETARCH": "amd64",
    "TARGETOS": "linux", "TARGETPLATFORM": "linux/amd64",
}  # fmt: skip
"""What a builder says of itself: in FROM as it is, elsewhere where an ARG asks."""
_DIRECTIVE = re.compile(r"#\s*([A-Za-z]+)\s*=\s*(.+?)\s*")
_HEREDOC = re.compile(r"<<(-?)\s*[\"']?([A-Za-z_][A-Za-z0-9_]*)[\"']?")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?:(:?[-+])([^{}]*))?\})")
_FLAG = re.compile(r"--([a-z]+)=(\S+)")
_ARG = re.compile(r"(\w+)(?:=(?:\"([^\"]*)\"|'([^']*)'|(\S*)))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    line: int
    """Its first."""
    last: int
    word: str
    """In capitals."""
    rest: str
    """Without comments, its lines joined."""
    text: str
    """The same with all of its spaces, as a builder passes it on."""
    body: tuple[str, ...] = ()
    """The lines of texts that it holds (`<<EOF`), with those that end them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """An image that is named."""

    name: str
    where: str
    """File:line."""


Choose = Callable[[Base], str]
"""What is to stand in its place."""


def rewritten(path: Path, args: Mapping[str, str], choose: Choose) -> str:
    """The Dockerfile, with other images in place of those it names. Raises SpecError.

    Asked for are the images of FROM and of COPY --from; not stages of the file, not `scratch`.
    `args`: build arguments, which win over the defaults of ARG.
    """
    text = read_text(path)
    lines = text.splitlines()
    stages: set[str] = set()
    known = dict(AUTOMATIC)
    count = 0
    for found in instructions(path, lines):
        where = f"{path}:{found.line}"
        if found.word == "ARG" and not count:
            _declare(found.rest, args, known)
        elif found.word == "FROM":
            image, name = _from(found, known, where)
            fresh = image
            if image.lower() not in {*stages, SCRATCH}:
                fresh = choose(Base(name=image, where=where))
            _replace(lines, found, f"FROM {fresh}" + (f" AS {name}" if name else ""))
            stages.add((name or str(count)).lower())
            count += 1
        elif found.word == "COPY" and (flag := re.match(r"(?:--\S+\s+)*?--from=(\S+)", found.rest)):
            image = flag[1]
            if image.lower() in stages or image.isdigit():
                continue
            fresh = choose(Base(name=image, where=where))
            _replace(lines, found, "COPY " + found.rest.replace(flag[0], _swap(flag, fresh), 1))
    if not count:
        raise SpecError("no FROM", where=str(path), hint="a Dockerfile begins with one")
    return "\n".join(lines) + "\n"


def canonical(name: str) -> str:
    """One name for what has several: ubuntu is docker.io/library/ubuntu:latest."""
    name = re.sub(r"^index\.docker\.io/", "docker.io/", name)
    first, slash, _ = name.partition("/")
    if not slash:
        name = f"docker.io/library/{name}"
    elif not ("." in first or ":" in first or first == "localhost"):
        name = f"docker.io/{name}"
    name = re.sub(r"^docker\.io/(?=[^/]+$)", "docker.io/library/", name)
    last = name.rpartition("/")[2]
    return name if ":" in last or "@" in last else f"{name}:latest"


def instructions(path: Path, lines: list[str]) -> Iterator[Instruction]:
    """Of a file's lines. Raises SpecError."""
    escape = _escape(lines)
    n = 0
    while n < len(lines):
        first, parts, exact = n, list[str](), ""
        while n < len(lines):
            line, whole = lines[n].strip(), lines[n].rstrip()
            n += 1
            if line.startswith("#") or (parts and not line):
                continue  # within an instruction too
            more = line.endswith(escape)
            parts.append(line[:-1].strip() if more else line)
            exact += whole[:-1] if more else whole
            if not more:
                break
        word, _, rest = " ".join(parts).strip().partition(" ")
        if not word:
            continue
        begun = n
        if word.upper() in ("RUN", "COPY", "ADD"):
            for dash, end in _HEREDOC.findall(rest):
                n = _after(path, lines, n, end, tabs=bool(dash))
        while lines[first].strip().startswith("#"):
            first += 1
        yield Instruction(
            line=first + 1,
            last=n,
            word=word.upper(),
            rest=rest.strip(),
            text=exact.strip()[len(word) :].strip(),
            body=tuple(lines[begun:n]),
        )


def _escape(lines: list[str]) -> str:
    for line in lines:
        directive = _DIRECTIVE.fullmatch(line.strip())
        if directive is None:
            break
        if directive[1].lower() == "escape" and directive[2] in ("\\", "`"):
            return directive[2]
    return "\\"


def _after(path: Path, lines: list[str], n: int, end: str, *, tabs: bool) -> int:
    for at in range(n, len(lines)):
        if (lines[at].lstrip("\t") if tabs else lines[at]) == end:
            return at + 1
    raise SpecError(f"the text up to `{end}` does not end", where=f"{path}:{n}")


def _declare(rest: str, args: Mapping[str, str], known: dict[str, str]) -> None:
    for name, *values in _ARG.findall(rest):
        default = next((v for v in values if v), "")
        known[name] = args.get(name, expanded(default, known))


def _from(found: Instruction, known: Mapping[str, str], where: str) -> tuple[str, str]:
    words = found.rest.split()
    while words and (flag := _FLAG.fullmatch(words[0])):
        platform = expanded(flag[2], known)
        if flag[1] != "platform" or platform not in _PLATFORMS:
            raise SpecError(
                f"`{words[0]}` is not what images are built for here",
                where=where,
                hint="images are for linux/amd64; leave --platform out",
            )
        words.pop(0)
    named = len(words) == 3 and words[1].upper() == "AS"
    if len(words) != 1 and not named:
        raise SpecError("FROM needs an image, and nothing else but AS and a name", where=where)
    image = expanded(words[0], known)
    if not image:
        raise SpecError(
            f"`{words[0]}` is empty: no ARG before the first FROM gives it a value",
            where=where,
            hint="give the ARG a default, or the recipe an entry in `args`",
        )
    return image, words[2] if named else ""


def expanded(text: str, known: Mapping[str, str], *, quoted: bool = True) -> str:
    """With the values of variables in place of their names; quoted: quotes around it go."""

    def value(found: re.Match[str]) -> str:
        name, how, other = found[1] or found[2], found[3] or "", found[4] or ""
        has = bool(known.get(name)) if how.startswith(":") else name in known
        if how.endswith("+"):
            return other if has else ""
        return known.get(name, "") if has or not how else other

    return _VARIABLE.sub(value, text.strip("\"'") if quoted else text)


def _swap(flag: re.Match[str], fresh: str) -> str:
    return flag[0][: flag.start(1) - flag.start()] + fresh


def _replace(lines: list[str], found: Instruction, fresh: str) -> None:
    """On the same line, so that what a builder says of lines is true of the file as it is."""
    lines[found.line - 1] = fresh
    for n in range(found.line, found.last):
        lines[n] = ""
