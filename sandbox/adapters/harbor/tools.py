"""The programs of ours that a converted task brings into a box: what grades, and what answers installers."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from sandbox.adapters.harbor.packages import ANSWERED_DEBS, TOOLS, Packages
from sandbox.formats.digest import Entry
from sandbox.formats.harbor_wants import INSTALLERS, LOCAL, PROJECT, REQUIREMENT, VALUED
from sandbox.model.image import ImageLock

FOLDER = ".grading"
"""Of the working directory: where the hidden tests are."""
GRADE = f"{FOLDER}/grade"
_NAMES = (
    "apt", "apt-get", "aptitude", "curl", "wget", "pip", "pip3", "pipx", "uv", "uvx", "virtualenv",
    "debconf-set-selections", "dpkg-reconfigure", "locale-gen",
)  # fmt: skip
_STUB = """\
import os, sys
tools = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + "/bin"
os.environ["STILLROOM_BIN"] = tools
os.execv(f"{tools}/NAME", [f"{tools}/NAME", *sys.argv[1:]])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What grade.py is told."""

    script: str
    shell: Sequence[str]
    """What runs it."""
    cwd: str
    env: Mapping[str, str]
    protocol: str
    keys: Mapping[str, Sequence[float]]
    """Name of a reward → the levels that it is looked at."""
    expected: Sequence[str] = ()
    """Tests that have to be among those that passed."""


def tools(lock: ImageLock, packages: Packages) -> Iterator[Entry]:
    """Installers that answer offline, and what they know of."""
    inside = files("sandbox.adapters.harbor") / "inside"
    yield Entry("tool", "exec", (inside / "tool.py").read_bytes())
    for name in _NAMES:
        yield Entry(f"bin/{name}", "link", b"../tool")
    yield Entry("bin/venv", "link", b"../tool")
    for name in ("pip", "venv", "virtualenv"):
        yield Entry(f"site/{name}/__init__.py", "file", b"")
        yield Entry(f"site/{name}/__main__.py", "file", _STUB.replace("NAME", name).encode())
    yield Entry("plan.json", "file", json.dumps(known(lock, packages), indent=1).encode())


def known(lock: ImageLock, packages: Packages) -> dict[str, Any]:
    wheels = {p.name: p.version for layer in lock.layers for p in layer.wheels}
    debs = {p.name for layer in lock.layers for p in layer.debs}
    return {
        "wheels": dict.fromkeys(sorted(TOOLS), "0") | wheels,
        "debs": sorted({*debs, *ANSWERED_DEBS, *packages.answered}),
        "answers": list(packages.answers),
        "valued": sorted(VALUED),
        "installers": INSTALLERS.pattern,
        "local": LOCAL.pattern,
        "requirement": REQUIREMENT.pattern,
        "project": PROJECT.pattern,
    }


def grading(plan: Plan, lock: ImageLock, packages: Packages) -> Iterator[Entry]:
    """All of FOLDER but the tests themselves."""
    inside = files("sandbox.adapters.harbor") / "inside"
    yield Entry("grade", "exec", (inside / "grade.py").read_bytes())
    yield from (e for e in tools(lock, packages) if e.path != "plan.json")
    told = {
        **known(lock, packages),
        "shell": list(plan.shell),
        "script": plan.script,
        "tests": "/tests",
        "cwd": plan.cwd,
        "env": dict(plan.env),
        "protocol": plan.protocol,
        "keys": {key: list(levels) for key, levels in plan.keys.items()},
        "expected": list(plan.expected),
    }
    yield Entry("plan.json", "file", (json.dumps(told, indent=1) + "\n").encode())
