#!/usr/bin/python3 -IBS
"""Installers that answer offline: apt, pip, uv, uvx, curl, wget, venv, by the name they are called.

What the image has is installed already, so they say yes. What it has not they refuse, and write it
to a list that whoever runs the script reads. plan.json names what there is.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import Any

PYTHON = "/usr/bin/python3"
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?\s*(.*)", re.DOTALL)
_VALUED = frozenset({
    "-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f",
    "--find-links", "-t", "--target", "--python", "--prefix", "--root", "--timeout", "--retries",
    "--trusted-host", "--platform", "--progress-bar", "--src", "--cache-dir", "-p", "-w", "--with",
    "--with-requirements", "--from", "--python-version", "--with-editable", "--directory",
    "--project", "--index", "--group", "-o", "--target-release",
})  # fmt: skip
_INSTALLERS = re.compile(r"https?://(astral\.sh/uv|(bootstrap\.)?pypa\.io/get-pip|bootstrap\.pypa)")
_LOCAL = re.compile(r"(https?://)?(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])([:/]|$)")
_REFUSED = 1


def plan() -> dict[str, Any]:
    with open(os.environ["STILLROOM_TOOLS"], encoding="utf-8") as f:
        found: dict[str, Any] = json.load(f)
    return found


def refuse(wanted: list[str]) -> int:
    with open(os.environ["STILLROOM_WANTED"], "a", encoding="utf-8") as f:
        f.writelines(f"{line}\n" for line in wanted)
    for line in wanted:
        print(f"stillroom: not in this image, and there is no network: {line}", file=sys.stderr)
    return _REFUSED


def split(
    words: Iterable[str], *, to_first: bool = False
) -> tuple[list[str], list[tuple[str, str]]]:
    """Arguments, options with their values, and, with to_first, what is another program's."""
    given: list[str] = []
    options: list[tuple[str, str]] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return given + left, options
        if word.startswith("-") and word != "-":
            name, equals, value = word.partition("=")
            if not equals and name in _VALUED and left:
                value = left.pop(0)
            options.append((name, value))
        else:
            given.append(word)
            if to_first:
                return given + left, options
    return given, options


def name_of(requirement: str) -> str:
    found = _NAME.fullmatch(requirement.strip())
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""


def lacking(requirements: Iterable[str]) -> list[str]:
    have = plan()
    found = []
    for said in requirements:
        version = have["wheels"].get(name_of(said))
        _, _, exact = said.partition("==")
        exact = exact.partition(";")[0].strip()
        other = exact and exact != version and "*" not in exact and said not in have["answers"]
        if version is None or other:
            found.append(f"pip install {said}")
    return found


def listed(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as f:
            lines = [line.partition(" #")[0].strip() for line in f]
    except OSError:
        return [f"-r {path}"]
    return [line for line in lines if line and not line.startswith(("#", "--hash"))]


def named(options: Iterable[tuple[str, str]]) -> list[str]:
    found: list[str] = []
    for name, value in options:
        if name in ("-r", "--requirement", "--with-requirements"):
            found += listed(value)
        elif name in ("-w", "--with"):
            found += [part.strip() for part in value.split(",")]
        elif name in ("-e", "--editable"):
            found.append("-e")
    return found


def install(words: list[str]) -> int:
    given, options = split(words)
    missing = lacking([*given, *named(options)])
    return refuse(missing) if missing else 0


def apt(words: list[str]) -> int:
    given, _ = split(words)
    if given[:1] not in (["install"], ["build-dep"]):
        return 0
    have = set(plan()["debs"])
    missing = [p for p in given[1:] if p.partition("=")[0].partition(":")[0] not in have]
    return refuse([f"apt-get install {p}" for p in missing]) if missing else 0


def pip(words: list[str]) -> int:
    match words:
        case ["install", *rest]:
            return install(rest)
        case ["--version" | "-V", *_]:
            print("pip 23.0.1 (stillroom, offline)")
            return 0
        case ["list" | "freeze", *_]:
            for name, version in sorted(plan()["wheels"].items()):
                print(f"{name}=={version}")
            return 0
        case ["show", name, *_]:
            version = plan()["wheels"].get(name_of(name))
            print(f"Name: {name}\nVersion: {version}" if version else f"no {name}")
            return 0 if version else 1
        case ["download" | "wheel", *_]:
            return refuse(["pip " + " ".join(words)])
        case _:
            return 0


def execute(words: list[str]) -> int:
    """In place of this program. `python` and what is no program of ours is found as usual."""
    name, *rest = words
    if name in ("pytest", "py.test"):
        words = [PYTHON, "-m", "pytest", *rest]
    elif name.endswith(".py"):
        words = [PYTHON, *words]
    elif shutil.which(name) is None:
        return refuse([f"run {name}"])
    sys.stdout.flush()
    return os.execvp(words[0], words)


def uvx(words: list[str]) -> int:
    given, options = split(words, to_first=True)
    tool = [value for name, value in options if name == "--from"] or given[:1]
    tool = [t.replace("@latest", "").replace("@", "==") for t in tool]
    missing = lacking([*tool, *named(options)])
    if missing:
        return refuse(missing)
    if not given:
        return 0
    return execute([given[0].partition("@")[0], *given[1:]])


def uv(words: list[str]) -> int:
    match words:
        case ["pip", *rest]:
            return pip(rest)
        case ["add", *rest] | ["tool", "install", *rest]:
            return install(rest)
        case ["venv", *rest]:
            return venv(split(rest)[0] or [".venv"])
        case ["run", *rest]:
            return uv_run(rest)
        case ["tool", "run", *rest]:
            return uvx(rest)
        case _:
            if words[:1] in (["--version"], ["-V"], ["version"]):
                print("uv 0.0.0 (stillroom, offline)")
            return 0


def uv_run(words: list[str]) -> int:
    given, options = split(words, to_first=True)
    if missing := lacking(named(options)):
        return refuse(missing)
    return execute(given) if given else 0


def venv(words: list[str]) -> int:
    """A folder whose programs are the image's."""
    tools = os.path.dirname(os.path.abspath(sys.argv[0]))
    tools = os.environ.get("STILLROOM_BIN", tools)
    for folder in split(words)[0]:
        place = os.path.join(os.path.abspath(folder), "bin")
        os.makedirs(place, exist_ok=True)
        for name in ("python", "python3"):
            link(PYTHON, os.path.join(place, name))
        for name in ("pip", "pip3", "uv"):
            link(os.path.join(tools, name), os.path.join(place, name))
        found = shutil.which("pytest")
        if found:
            link(found, os.path.join(place, "pytest"))
        with open(os.path.join(place, "activate"), "w", encoding="utf-8") as f:
            f.write(f'VIRTUAL_ENV="{os.path.dirname(place)}"\nexport VIRTUAL_ENV\n')
            f.write(f'PATH="{place}:$PATH"\nexport PATH\ndeactivate() {{ :; }}\n')
    return 0


def link(target: str, place: str) -> None:
    if not os.path.lexists(place):
        os.symlink(target, place)


def fetch(words: list[str]) -> int:
    """For curl and wget: from this box itself; installers of what there is; else refused."""
    name = os.path.basename(sys.argv[0])
    far = [w for w in words if w.startswith(("http://", "https://", "ftp://"))]
    if far and all(_INSTALLERS.match(w) for w in far):
        return installer(words)
    if [w for w in far if not _LOCAL.match(w)]:
        return refuse([" ".join([name, *words])])
    mine = os.path.dirname(os.path.abspath(sys.argv[0]))
    places = [p for p in os.environ.get("PATH", "").split(":") if os.path.abspath(p) != mine]
    real = shutil.which(name, path=":".join(places))
    if real is None:
        return refuse([f"apt-get install {name}"])
    return os.execv(real, [real, *words])


def installer(words: list[str]) -> int:
    """The script that would install uv or pip: nothing is left to do."""
    target = next((words[i + 1] for i, w in enumerate(words[:-1]) if w in ("-o", "-O")), "")
    if target and target != "-":
        with open(target, "w", encoding="utf-8") as f:
            f.write("0\n" if target.endswith(".py") else ":\n")
    else:
        print(":")
    return 0


def nothing(words: list[str]) -> int:
    """What sets up a package has nothing to do: it is there as it is."""
    del words
    return 0


CALLED: dict[str, Callable[[list[str]], int]] = {
    "apt": apt,
    "apt-get": apt,
    "aptitude": apt,
    "curl": fetch,
    "debconf-set-selections": nothing,
    "dpkg-reconfigure": nothing,
    "locale-gen": nothing,
    "wget": fetch,
    "pip": pip,
    "pip3": pip,
    "pipx": lambda words: uvx(words[1:]),
    "uv": uv,
    "uvx": uvx,
    "venv": venv,
    "virtualenv": venv,
}


def main(name: str, words: list[str]) -> None:
    sys.exit(CALLED[name](words))


if __name__ == "__main__":
    main(os.path.basename(sys.argv[0]), sys.argv[1:])
