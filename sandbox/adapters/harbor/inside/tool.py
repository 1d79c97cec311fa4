#!/usr/bin/python3 -IBS
"""Installers that answer offline: apt, pip, uv, uvx, curl, wget, venv, by the name they are called.

What the image has is installed already, so they say yes. What it has not they refuse, and write it
to a list that whoever runs the script reads. plan.json names what there is, and how a command line
is read.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

PYTHON = "/usr/bin/python3"
EDITABLE = "--editable"
_REFUSED = 1


@functools.cache
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
            if not equals and name in plan()["valued"] and left:
                value = left.pop(0)
            options.append((name, value))
        else:
            given.append(word)
            if to_first:
                return given + left, options
    return given, options


def name_of(requirement: str) -> str:
    found = re.fullmatch(plan()["requirement"], requirement.strip(), re.DOTALL)
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
        elif name == EDITABLE and value:
            found.append(value)
    return found


def install(words: list[str]) -> int:
    given, options = split(words)
    places = [word for word in given if re.match(plan()["project"], word)]
    missing = lacking([*(g for g in given if g not in places), *named(options)])
    return (
        refuse(missing)
        if missing
        else projects(places, editable="-e" in words or EDITABLE in words)
    )


def projects(places: list[str], *, editable: bool) -> int:
    """Folders with a project: built by the image's own pip, of what the image has."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    for place in places:
        line = [PYTHON, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation"]
        line += ["--root-user-action=ignore", "--disable-pip-version-check"]
        line += ["-e", place] if editable else [place]
        done = subprocess.run(line, env=env, check=False)
        if done.returncode:
            return done.returncode
    return 0


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
    for folder in split(words)[0]:
        place = os.path.join(os.path.abspath(folder), "bin")
        os.makedirs(place, exist_ok=True)
        for name in ("python", "python3", f"python3.{sys.version_info.minor}"):
            link(PYTHON, os.path.join(place, name))
        for name in ("pip", "pip3", "uv"):
            installer_of(name, os.path.join(place, name))
        for name, path in scripts():
            link(path, os.path.join(place, name))
        with open(os.path.join(place, "activate"), "w", encoding="utf-8") as f:
            f.write(f'VIRTUAL_ENV="{os.path.dirname(place)}"\nexport VIRTUAL_ENV\n')
            f.write(f'PATH="{place}:$PATH"\nexport PATH\ndeactivate() {{ :; }}\n')
    return 0


def installer_of(name: str, place: str) -> None:
    """It answers here, and where a task is graded; elsewhere it is the image's own, if that has one."""
    if not os.path.lexists(place):
        with open(place, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec "${{STILLROOM_BIN:-/usr/local/bin}}/{name}" "$@"\n')
        os.chmod(place, 0o755)


def scripts(top: str = "/usr/local/bin") -> Iterable[tuple[str, str]]:
    """The programs that packages of PyPI have brought into the image."""
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else ():
        if not re.fullmatch(r"(pip|python)[\d.]*|uvx?", name):
            yield name, os.path.join(top, name)


def link(target: str, place: str) -> None:
    if not os.path.lexists(place):
        os.symlink(target, place)


def fetch(words: list[str]) -> int:
    """For curl and wget: from this box itself; installers of what there is; else refused."""
    name = os.path.basename(sys.argv[0])
    far = [w for w in words if w.startswith(("http://", "https://", "ftp://"))]
    if far and all(re.match(plan()["installers"], w) for w in far):
        return installer(words)
    if [w for w in far if not re.match(plan()["local"], w)]:
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
