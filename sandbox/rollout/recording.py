"""`stillroom record`: what a box asks the real network, written down for all that come after."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sandbox.errors import SpecError, UserError
from sandbox.formats import indexfile, jsonfile, yamlfile
from sandbox.model.index import LOCK_NAME
from sandbox.model.instant import seconds_of, written
from sandbox.model.task import Digest, TaskSpec
from sandbox.rollout.folder import RolloutFolder
from sandbox.rollout.network import LOG, with_index
from sandbox.rollout.run import Attempt, Stopwatch, World, agent_box, standing
from sandbox.runtime.base import Box, ExecResult
from sandbox.runtime.freeze.build import programs
from sandbox.runtime.network import cassette as tapes
from sandbox.runtime.network.attach import connected
from sandbox.runtime.network.cassette import BLOBS, INDEX, Cassette, cassette_digest, read_index
from sandbox.runtime.network.entry import Entry
from sandbox.runtime.network.index.record import record_index
from sandbox.runtime.network.index.resolve import Wanted
from sandbox.runtime.network.merge import merged
from sandbox.runtime.network.settings import Settings

CASSETTE = "cassette"
"""The folder's name where the task has none yet."""
OUTPUT_BYTES = 1 << 20
_SECTION = "network:\n  mode: replay\n  cassette: {name}\n  digest: {digest}\n"
_PLACE = re.compile(r"[^\s:]+:\d+|\[[0-9a-fA-F:]+\]:\d+")
_HINT = "e.g. --instead pypi.org:443=localhost:8443"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How to record."""

    fresh: bool = False
    """Forget what was recorded before, instead of adding to it."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """`host:port` → `host:port` that is asked in its place."""
    ca_file: str = ""
    packages: Wanted = field(default_factory=Wanted)
    """For the frozen package index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One file of a cassette, as it is now."""

    path: Path
    kind: Literal["answers", "packages"]
    answers: int
    fresh: int
    """Of them, how many are not what was there before."""


Work = Callable[[Attempt, Box], None]


def instead_of(words: Sequence[str]) -> dict[str, str]:
    """Of `host:port=host:port`. Raises UserError."""
    found = {}
    for word in words:
        asked, equals, told = word.partition("=")
        if not equals or not _PLACE.fullmatch(asked) or not _PLACE.fullmatch(told):
            raise UserError(f"`{word}` is not host:port=host:port", hint=_HINT)
        found[asked.lower()] = told
    return found


def running(command: Sequence[str], show: Callable[[ExecResult], None]) -> Work:
    """Run one command in the box. One that fails is shown, and nothing is written."""

    def work(attempt: Attempt, box: Box) -> None:
        seconds = attempt.task.limits.wall_seconds
        done = box.exec(command, seconds=seconds, output_bytes=OUTPUT_BYTES)
        show(done)
        if done.timed_out or done.exit_code:
            how = "took too long" if done.timed_out else f"ended with {done.exit_code}"
            raise UserError(
                f"the command {how}: nothing was recorded",
                hint="to record what it was told anyway: -- sh -c 'COMMAND || true'",
            )

    return work


def folder_of(task: TaskSpec) -> Path:
    return Path(task.home) / "task_specs" / task.id / (task.network.cassette or CASSETTE)


def record_packages(task: TaskSpec, world: World, wish: Wish) -> Recorded:
    """Resolve what a box is to be able to install, by what the real indexes say today."""
    folder, depot = folder_of(task), world.depot
    image = depot.image(Path(task.home), task.image.name, task.image.digest)
    progress = world.observer.preparing
    before = folder / LOCK_NAME
    old = indexfile.load(before).pins if before.exists() else ()
    at = written(seconds_of(task.clock.at))
    lock = record_index(depot.store, folder, wish.packages, at, image, progress, fresh=wish.fresh)
    return Recorded(
        path=folder / LOCK_NAME,
        kind="packages",
        answers=len(lock.pins),
        fresh=sum(p not in old for p in lock.pins),
    )


def record(task: TaskSpec, world: World, work: Work, wish: Wish) -> Recorded:
    """Have `work` done in the agent's box, on the real network, and write down every answer."""
    store = world.depot.store
    folder = folder_of(task)
    before = _before(folder, world)
    supplies = world.depot.supply(task)
    with store.scratch() as scratch:
        settings = Settings(
            mode="record",
            log=str(scratch / LOG),
            cassette=f"task_specs/{task.id}/{folder.name}",
            remedy="it is asked of the real network, which gave no answer",
            instead=wish.instead,
            ca_file=wish.ca_file,
        )
        settings = with_index(settings, before, store.blob(""))
        wire = programs(store).program("wire")
        with connected(store, wire, settings, before.lock) as link:
            with standing(world, task, supplies, link.joined(agent_box(task, supplies))) as box:
                link.start(box)
                work(_attempt(task, world, scratch / "rollout"), box)
            link.check()
            heard = link.scratch / INDEX
            new = read_index(heard) if heard.exists() else ()
            asked = {e.series for e in new}
            old = [e for e in before.entries if not wish.fresh or e.series in asked]
            entries = merged(old, new)
            _write(folder, entries, link.scratch / BLOBS)
    known = set(before.entries)
    return Recorded(
        path=folder / INDEX,
        kind="answers",
        answers=len(entries),
        fresh=sum(entry not in known for entry in entries),
    )


def record_all(
    task: TaskSpec, world: World, work: Work, wish: Wish, *, opened: bool
) -> Iterator[Recorded]:
    """The packages that are wished for; and what is done in a box, which is `opened` in any case."""
    packages = wish.packages != Wanted()
    if packages:
        yield record_packages(task, world, wish)
    if opened or not packages:
        yield record(task, world, work, wish)


def pin(task: TaskSpec) -> tuple[Digest, bool]:
    """Write the cassette's digest into task.yaml; was it another? Raises SpecError."""
    folder = folder_of(task)
    digest = cassette_digest(folder)
    path = Path(task.home) / "task_specs" / task.id / "task.yaml"
    text = yamlfile.read_text(path)
    old = task.network.digest
    if old == digest:
        return digest, False
    section = _SECTION.format(name=folder.name, digest=digest)
    if old:
        fresh = text.replace(old, digest)
    elif not re.search(r"(?m)^network\s*:", text):
        fresh = f"{text.rstrip()}\n{section}"
    else:
        hint = "write there: " + " ".join(section.split())
        raise SpecError("`network` says another mode than `replay`", where=str(path), hint=hint)
    jsonfile.write(path, fresh)
    return digest, True


def wanted(
    pip: Sequence[str] | None, npm: Sequence[str] | None, apt: Sequence[str] | None
) -> Wanted:
    return Wanted(pip=tuple(pip or ()), npm=tuple(npm or ()), apt=tuple(apt or ()))


def _before(folder: Path, world: World) -> Cassette:
    """What was recorded, whatever task.yaml pins: this is how the pin is made."""
    if not folder.exists():
        return Cassette(folder=folder, digest=Digest(""))
    return tapes.load(folder, world.depot.store, world.observer.preparing)


def _write(folder: Path, entries: tuple[Entry, ...], bodies: Path) -> None:
    if entries or (folder / INDEX).exists():
        tapes.write(folder, entries, [bodies])
    elif not folder.exists():
        raise UserError(
            "nothing was asked of the network: nothing was recorded",
            hint="a task that needs no network is better off with `mode: none`",
        )


def _attempt(task: TaskSpec, world: World, folder: Path) -> Attempt:
    """Of no run: its files go when the recording is done."""
    files = RolloutFolder(folder)
    files.fresh()
    return Attempt(
        task=task,
        number=0,
        world=world,
        folder=files,
        watch=Stopwatch(world.clocks.ticks, world.clocks.wall),
    )
