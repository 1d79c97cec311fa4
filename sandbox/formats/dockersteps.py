"""A Dockerfile of one stage as a list of steps, each with its line; what is not understood is refused."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.errors import SpecError
from sandbox.formats.dockerfile import AUTOMATIC, Instruction, expanded, instructions
from sandbox.formats.yamlfile import read_text

UV = re.compile(r"(ghcr\.io/)?astral-sh/uv(:.*|@.*)?")
"""An image that is there to copy one tool from."""
SHELL = ("/bin/sh", "-c")
_PASSED = frozenset({"LABEL", "MAINTAINER", "EXPOSE", "STOPSIGNAL", "VOLUME", "HEALTHCHECK", "CMD"})
_FLAG = re.compile(r"--([a-z-]+)(?:=(\S+))?\s+")
_ENV_PAIR = re.compile(r"([A-Za-z_]\w*)=(\"(?:[^\"\\]|\\.)*\"|'[^']*'|(?:\\.|[^\s\\])*)", re.DOTALL)
_TEXT = re.compile(r"<<-?\s*([\"']?)([A-Za-z_]\w*)\1")
_ARG = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class From:
    where: str
    image: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    where: str
    script: str
    shell: tuple[str, ...] = SHELL
    """What the script is given to."""
    args: dict[str, str] = field(default_factory=dict)
    """Of ARG: in the environment of this step, but not in that of what comes after."""
    known: dict[str, str] = field(default_factory=dict)
    """All variables, of ENV too, as far as the Dockerfile says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    where: str
    sources: tuple[str, ...]
    """Of the build context."""
    target: str
    text: str | None = None
    """What is to be written to `target`, instead of a file of the context."""
    mode: int | None = None
    owner: str | None = None
    unpack: bool = False
    """ADD: an archive is unpacked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    where: str
    values: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workdir:
    where: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    where: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrypoint:
    where: str
    words: tuple[str, ...]
    """In the shell's form, /bin/sh -c and the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """What changes no file, and starts nothing."""

    where: str
    word: str
    rest: str


Step = From | Run | Copy | Env | Workdir | User | Entrypoint | Passed


def load_steps(path: Path) -> tuple[Step, ...]:
    """Raises SpecError with file and line."""
    lines = read_text(path).splitlines()
    found = tuple(_Reader(path, lines).steps())
    stages = [step for step in found if isinstance(step, From)]
    if not stages:
        raise SpecError("no FROM", where=str(path), hint="a Dockerfile begins with one")
    return found


class _Reader:
    def __init__(self, path: Path, lines: list[str]) -> None:
        self._path = path
        self._lines = lines
        self._known: dict[str, str] = {}
        self._args: set[str] = set()
        self._env_names: set[str] = set()
        """What ENV says wins over ARG."""
        self._shell: tuple[str, ...] = SHELL
        self._tools: set[str] = set()
        """Stages that are there for a tool that is answered in another way."""
        self._from = False
        self._last = ""
        """The name of the last stage: only the next one may go on from it."""
        self._skips = False

    def steps(self) -> Iterator[Step]:
        for found in instructions(self._path, self._lines):
            if found.word == "FROM":
                if stage := self._stage(found):
                    yield stage
            elif not self._skips and (step := self._step(found)):
                yield step

    def _where(self, found: Instruction) -> str:
        return f"{self._path}:{found.line}"

    def _refuse(self, found: Instruction, message: str, hint: str = "") -> SpecError:
        return SpecError(message, where=self._where(found), hint=hint)

    def _stage(self, found: Instruction) -> From | None:
        words = [w for w in found.rest.split() if not w.startswith("--platform")]
        image = expanded(words[0], self._known) if words else ""
        name = words[2] if len(words) == 3 and words[1].upper() == "AS" else ""
        self._skips = bool(UV.fullmatch(image))
        if self._skips:
            self._tools.add(name or image)
            return None
        if self._last and image.lower() == self._last:
            self._last = name.lower()
            return None
        if self._from:
            hint = "copy the files that are needed into environment/, or lock the image by hand"
            raise self._refuse(found, "a Dockerfile of several stages is not converted", hint)
        self._from = True
        self._last = name.lower()
        return From(where=self._where(found), image=image)

    def _step(self, found: Instruction) -> Step | None:
        if found.word in _PASSED:
            return Passed(where=self._where(found), word=found.word, rest=found.rest)
        readers: dict[str, Callable[[Instruction], Step | None]] = {
            "ARG": self._argue,
            "ENV": self._env,
            "RUN": self._run,
            "COPY": self._copy,
            "ADD": self._copy,
            "WORKDIR": lambda f: Workdir(where=self._where(f), path=expanded(f.rest, self._known)),
            "USER": lambda f: User(where=self._where(f), name=expanded(f.rest, self._known)),
            "ENTRYPOINT": self._entrypoint,
            "SHELL": self._choose_shell,
        }
        if found.word not in readers:
            raise self._refuse(found, f"`{found.word}` is not supported")
        return readers[found.word](found)

    def _env(self, found: Instruction) -> Env:
        values = self._pairs(found)
        self._known |= values
        self._env_names |= values.keys()
        return Env(where=self._where(found), values=values)

    def _entrypoint(self, found: Instruction) -> Entrypoint:
        listed = _listed(found.rest)
        return Entrypoint(where=self._where(found), words=listed or ("/bin/sh", "-c", found.rest))

    def _run(self, found: Instruction) -> Run:
        return Run(
            where=self._where(found),
            script=self._script(found),
            shell=self._shell,
            args={k: v for k, v in self._known.items() if k in self._args - self._env_names},
            known=dict(self._known),
        )

    def _choose_shell(self, found: Instruction) -> Passed:
        words = _listed(found.rest)
        if (words or ("",))[0].rpartition("/")[2] not in ("bash", "sh", "dash"):
            raise self._refuse(found, f"SHELL {found.rest} is not supported")
        self._shell = words
        return Passed(where=self._where(found), word="SHELL", rest=found.rest)

    def _argue(self, found: Instruction) -> None:
        for name, value in self._arguments(found.rest):
            if name in self._env_names:
                continue
            if value is not None:
                self._known[name] = expanded(value, self._known)
            self._known.setdefault(name, AUTOMATIC.get(name, ""))
            if self._from:
                self._args.add(name)

    def _arguments(self, rest: str) -> Iterator[tuple[str, str | None]]:
        yield from _ENV_PAIR.findall(rest)
        bare = _ENV_PAIR.sub(" ", rest).split()
        yield from ((word, None) for word in bare if _ARG.fullmatch(word))

    def _pairs(self, found: Instruction) -> dict[str, str]:
        first, _, rest = found.rest.partition(" ")
        if "=" not in first:
            return {first: expanded(rest.strip(), self._known)}
        known: Mapping[str, str] = {"PATH": "$PATH", **self._known}
        return {
            name: expanded(re.sub(r"\\(.)", r"\1", value), known)
            for name, value in _ENV_PAIR.findall(found.rest)
        }

    def _script(self, found: Instruction) -> str:
        rest = self._flags(found, ("mount", "network", "security"), found.text)[0]
        if listed := _listed(rest):
            return shlex.join(listed)
        if not (text := _TEXT.fullmatch(rest.strip())):
            return "\n".join([rest, *found.body])
        lines = [_untabbed(text, line) for line in found.body[:-1]]
        if lines and lines[0].startswith("#!"):
            # A program of another language, as a builder runs it: from a file.
            end = "STILLROOM_END"
            start = f"f=$(mktemp) && chmod 700 $f && cat > $f <<'{end}' && $f"
            return "\n".join([start, *lines, end])
        return "\n".join(lines)

    def _flags(
        self, found: Instruction, known: tuple[str, ...], text: str
    ) -> tuple[str, dict[str, str]]:
        rest, flags = text, dict[str, str]()
        while flag := _FLAG.match(rest):
            if flag[1] not in known or (flag[1] == "mount" and "type=cache" not in (flag[2] or "")):
                raise self._refuse(found, f"`{flag[0].strip()}` is not supported")
            flags[flag[1]] = flag[2] or ""
            rest = rest[flag.end() :]
        return rest, flags

    def _text_of(self, found: Instruction, rest: str) -> str:
        """What `COPY <<EOF` writes: with the values of variables, unless EOF is in quotes."""
        start = _TEXT.match(rest)
        if start is None:
            raise self._refuse(found, f"`{rest}` is not supported")
        if rest.count("<<") > 1:
            raise self._refuse(found, "several texts in one step are not converted")
        whole = "".join(f"{_untabbed(start, line)}\n" for line in found.body[:-1])
        if start[1]:
            return whole
        parts = whole.split("\\$")
        return "$".join(expanded(part, self._known, quoted=False) for part in parts)

    def _copy(self, found: Instruction) -> Copy | None:
        rest, flags = self._flags(found, ("chown", "chmod", "from", "link", "parents"), found.rest)
        origin = flags.get("from", "")
        if origin in self._tools or UV.fullmatch(origin):
            return None
        if origin:
            raise self._refuse(found, f"a copy from `{origin}` is not converted")
        where, text = self._where(found), None
        mode = flags.get("chmod")
        if mode is not None and not re.fullmatch(r"0?[0-7]{3,4}", mode):
            raise self._refuse(found, f"`--chmod={mode}` is not supported", "e.g. --chmod=755")
        words = list(_listed(rest) or shlex.split(rest))
        if len(words) < 2:
            raise self._refuse(found, "what is to be copied, and where to?")
        *sources, target = (expanded(w, self._known) for w in words)
        if sources[0].startswith("<<"):
            text, sources = self._text_of(found, rest), []
        if far := next((s for s in sources if "://" in s or s.startswith("git@")), ""):
            raise self._refuse(found, f"`{found.word} {far}`: a build has no network here")
        return Copy(
            where=where,
            sources=tuple(sources),
            target=target,
            text=text,
            mode=int(mode, 8) if mode else None,
            owner=flags.get("chown"),
            unpack=found.word == "ADD",
        )


def _untabbed(text: re.Match[str], line: str) -> str:
    return line.lstrip("\t") if text[0].startswith("<<-") else line


def _listed(rest: str) -> tuple[str, ...]:
    """`["a", "b"]`, as Docker reads it; empty for what is none."""
    if not rest.lstrip().startswith("["):
        return ()
    try:
        found: Any = json.loads(rest)
    except ValueError:
        return ()
    whole = isinstance(found, list) and all(isinstance(w, str) for w in found)
    return tuple(found) if whole else ()
