"""What a program in a box tries by itself: each kind in one box, each attack a test."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sandbox.audit.conformance import Bench
from sandbox.audit.conformance.tars import Entry, make_tar
from tests.contract.attacks.table import INSIDE, PAGE, tried

PROGRAMS = ("calls", "process1", "places")
_ATTACK = re.compile(r'^    "([^"]+)": |(?<=, )"([^"]+)": ', re.MULTILINE)
_FOUND: dict[tuple[str, str], dict[str, str]] = {}
"""What was found, by runtime and program: each is run once."""


def attacks_of(program: str) -> list[str]:
    """The keys of its report."""
    text = (INSIDE / f"{program}.py").read_text(encoding="utf-8")
    return ["".join(both) for both in _ATTACK.findall(text[text.rindex("\nreport(") :])]


ATTACKS = {attack: program for program in PROGRAMS for attack in attacks_of(program)}


@tried(ATTACKS)
def test_it_is_held(bench: Bench, attack: str):
    program = ATTACKS[attack]
    key = bench.kind, program
    if key not in _FOUND:
        _FOUND[key] = run_inside(bench, program)
    assert _FOUND[key][attack] == "held"


def test_the_program_was_run_to_its_end_on_every_runtime():
    for (_, program), found in _FOUND.items():
        assert set(found) == set(attacks_of(program))


def run_inside(bench: Bench, program: str) -> dict[str, str]:
    """In a box of its own, which has to answer after it."""
    package = INSIDE.relative_to(PAGE.parents[2])
    files = [Entry(name=str(package / p.name), content=p.read_bytes()) for p in INSIDE.glob("*.py")]
    limits = replace(bench.spec.limits, memory_mib=256)
    with host() as told, bench.box(limits=limits) as box:
        told["places"] = [str(bench.store.root), "/var/lib/docker"]
        box.put(make_tar(files), "/tmp/inside")
        module = ".".join((*package.parts, program))
        command = ["python3", "-m", module, json.dumps(told)]
        done = box.exec(command, seconds=120, cwd="/tmp/inside")
        assert done.exit_code == 0, done
        assert box.exec(["echo", "fine"], seconds=30).stdout == b"fine\n"
        assert not box.lost()
    found: dict[str, str] = json.loads(done.stdout)
    return found


@contextmanager
def host() -> Iterator[dict[str, Any]]:
    """A machine with something to reach: a server on loopback, an abstract socket."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as other:
        name = f"stillroom-attacks-{server.getsockname()[1]}"
        other.bind(f"\0{name}")
        other.listen()
        yield {"port": server.getsockname()[1], "abstract": name}
