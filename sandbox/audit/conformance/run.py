"""Runs the checks, one after another, whatever a runtime does."""

import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from sandbox.audit.conformance import (
    archives,
    clock,
    confinement,
    facts,
    files,
    foreground,
    lifetime,
    limits,
    programs,
    snapshots,
    state,
    terminals,
    trusted,
    warmth,
    wires,
)
from sandbox.audit.conformance.bench import Bench, Unseen
from sandbox.audit.conformance.registry import Check, lacks
from sandbox.audit.conformance.tars import Entry, make_tar, unpacked
from sandbox.errors import UserError
from sandbox.model.task import Limits
from sandbox.rollout import plugins
from sandbox.runtime.base import Capabilities, Runtime
from sandbox.runtime.spec import BoxSpec, Image, Seed
from sandbox.runtime.store import Store

_LIMITS = Limits(memory_mib=128, pids=64, cpus=2.0)
_SEED = (
    Entry(name="etc", folder=True, mode=0o755),
    Entry(name="etc/seeded", content=b"beside the image's\n"),
    Entry(name="seeded", folder=True, mode=0o755),
    Entry(name="seeded/file", content=b"seeded\n"),
    Entry(name="seeded/script", content=b"#!/bin/sh\n", mode=0o755),
    Entry(name="seeded/folder", folder=True, mode=0o755),
    Entry(name="seeded/folder/file", content=b"below\n"),
    Entry(name="seeded/link", target="file"),
    Entry(name="seeded/old", content=b"to be renamed\n"),
    Entry(name="seeded/tofolder", content=b"to become a folder\n"),
    Entry(name="seeded/kept", folder=True, mode=0o755),
    Entry(name="seeded/kept/file", content=b"kept\n"),
    Entry(name="seeded/gone", folder=True, mode=0o755),
    Entry(name="seeded/gone/one", content=b"1\n"),
    Entry(name="seeded/gone/two", content=b"2\n"),
)
_GROUPS = (
    programs.GROUP,
    trusted.GROUP,
    terminals.GROUP,
    wires.GROUP,
    foreground.GROUP,
    files.GROUP,
    archives.GROUP,
    confinement.GROUP,
    facts.GROUP,
    limits.GROUP,
    clock.GROUP,
    state.GROUP,
    snapshots.GROUP,
    lifetime.GROUP,
    warmth.GROUP,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one check."""

    group: str
    name: str
    result: Literal["ok", "not ok", "skipped"]
    words: str = ""
    """Why it is not ok, or was skipped."""
    seconds: float = 0.0


def all_checks() -> list[Check]:
    return [check for group in _GROUPS for check in group.checks]


@contextmanager
def workbench(kind: str, store: Store, image: Image) -> Iterator[Callable[[Path], Bench]]:
    """A runtime that is held to its contract, and what the checks need; closed at the end.

    What it gives makes a Bench of an empty folder. Raises what opening the runtime raises.
    """
    with store.scratch() as folder:
        archive = make_tar(_SEED)
        tar = folder / "seed.tar"
        tar.write_bytes(archive)
        seed = Seed(tar=tar, folder=unpacked(archive, folder / "seed"))
        spec = BoxSpec(image=image, limits=_LIMITS, env={"TASK": "one two"}, workdir="/root")
        runtime = plugins.runtime(kind, store)
        try:
            yield lambda scratch: Bench(
                runtime=runtime, kind=kind, store=store, spec=spec, seed=seed, scratch=scratch
            )
        finally:
            runtime.close()


def run(
    kind: str, store: Store, image: Image, checks: Iterable[Check]
) -> Generator[Outcome, None, None]:
    """One after another. An error of the runtime's is its failure, never the end of the run.

    Raises UserError when there is no such runtime.
    """
    made = partial(Outcome, group="lifetime", result="not ok")
    opened = workbench(kind, store, image)
    try:
        bench = opened.__enter__()
    except UserError:
        raise
    except Exception as e:  # noqa: BLE001 - whatever its constructor raises
        yield made(name="a runtime can be made of a store", words=_where(e))
        return
    try:
        yield from _run(bench, store, checks)
    finally:
        failed = _closed(opened)
    if failed:
        yield made(name="a runtime can be closed", words=failed)


def _run(
    bench: Callable[[Path], Bench], store: Store, checks: Iterable[Check]
) -> Iterator[Outcome]:
    with store.scratch() as folder:
        able = _capabilities(bench(folder).runtime)
        for number, check in enumerate(checks):
            scratch = folder / str(number)
            scratch.mkdir()
            yield _outcome(check, bench(scratch), able)


def _closed(opened: AbstractContextManager[object]) -> str:
    """What went wrong in letting go of it; empty when nothing did."""
    try:
        opened.__exit__(None, None, None)
    except Exception as e:  # noqa: BLE001
        return _where(e)
    return ""


def _capabilities(runtime: Runtime) -> Capabilities | None:
    """None when it does not say: then nothing is skipped."""
    try:
        return runtime.capabilities()
    except Exception:  # noqa: BLE001 - a check of its own tells of it
        return None


def _outcome(check: Check, bench: Bench, able: Capabilities | None) -> Outcome:
    made = partial(Outcome, group=check.group, name=check.name)
    if able and (why := lacks(check, able)):
        return made(result="skipped", words=why)
    began = time.monotonic()
    try:
        check.function(bench)
    except Unseen as e:
        return made(result="skipped", words=str(e))
    except AssertionError as e:
        return made(result="not ok", words=str(e), seconds=time.monotonic() - began)
    except Exception as e:  # noqa: BLE001 - whatever the runtime raised is its own failure
        return made(result="not ok", words=_where(e), seconds=time.monotonic() - began)
    return made(result="ok", seconds=time.monotonic() - began)


def _where(error: Exception) -> str:
    """The error in words, and where in the runtime it was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    return f"{type(error).__name__}: {error} ({place})"
