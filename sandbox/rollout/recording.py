"""`stillroom record`: what a box asks the real network, written down for all that come after."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sandbox.errors import SpecError, UserError
from sandbox.formats import jsonfile, yamlfile
from sandbox.model.index import date_of
from sandbox.model.task import Digest, TaskSpec
from sandbox.rollout.folder import RolloutFolder
from sandbox.rollout.network import LOG, with_index
from sandbox.rollout.run import Attempt, Stopwatch, World, agent_box
from sandbox.runtime.base import Box, ExecResult
from sandbox.runtime.freeze.build import programs
from sandbox.runtime.freeze.preload import instant
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    folder: Path
    digest: Digest
    answers: int
    """In the cassette now."""
    fresh: int
    """Of them, how many are not what was there before."""

    packages: int = 0
    """Files that the frozen package index lists, of those that were asked for now and before."""


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


def record(task: TaskSpec, world: World, work: Work, wish: Wish) -> Recorded:
    """Have `work` done in the agent's box, on the real network, and write down every answer."""
    store = world.depot.store
    folder = Path(task.home) / "task_specs" / task.id / (task.network.cassette or CASSETTE)
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
            with world.runtime.create(link.joined(agent_box(task, supplies))) as box:
                link.start(box)
                work(_attempt(task, world, scratch / "rollout"), box)
            link.check()
            heard = link.scratch / INDEX
            new = read_index(heard) if heard.exists() else ()
            old = () if wish.fresh else before.entries
            entries = merged(old, new)
            digest = _written(folder, entries, link.scratch / BLOBS)
    known = set(before.entries)
    return Recorded(
        folder=folder,
        digest=digest,
        answers=len(entries),
        fresh=sum(entry not in known for entry in entries),
    )


def index(task: TaskSpec, world: World, wanted: Wanted, *, fresh: bool) -> Recorded:
    """Have the real package indexes say what `wanted` means, and write down the frozen one."""
    depot = world.depot
    folder = Path(task.home) / "task_specs" / task.id / (task.network.cassette or CASSETTE)
    image = depot.image(Path(task.home), task.image.name, task.image.digest)
    date = date_of(datetime.fromtimestamp(instant(task.clock), UTC))
    progress = world.observer.preparing
    lock = record_index(depot.store, folder, wanted, date, image, progress, fresh=fresh)
    answers = read_index(folder / INDEX) if (folder / INDEX).exists() else ()
    return Recorded(
        folder=folder,
        digest=cassette_digest(folder),
        answers=len(answers),
        fresh=0,
        packages=len(lock.pins),
    )


def pin(task: TaskSpec, recorded: Recorded) -> bool:
    """Write the digest into task.yaml, if it is not there yet. Raises SpecError."""
    path = Path(task.home) / "task_specs" / task.id / "task.yaml"
    text = yamlfile.read_text(path)
    old = task.network.digest
    if old == recorded.digest:
        return False
    section = _SECTION.format(name=recorded.folder.name, digest=recorded.digest)
    if old:
        fresh = text.replace(old, recorded.digest)
    elif not re.search(r"(?m)^network\s*:", text):
        fresh = f"{text.rstrip()}\n{section}"
    else:
        hint = "write there: " + " ".join(section.split())
        raise SpecError("`network` says another mode than `replay`", where=str(path), hint=hint)
    jsonfile.write(path, fresh)
    return True


def _before(folder: Path, world: World) -> Cassette:
    """What was recorded, whatever task.yaml pins: this is how the pin is made."""
    if not folder.exists():
        return Cassette(folder=folder, digest=Digest(""))
    return tapes.load(folder, world.depot.store, world.observer.preparing)


def _written(folder: Path, entries: tuple[Entry, ...], bodies: Path) -> Digest:
    if not entries and not (folder / INDEX).exists():
        if folder.exists():
            return cassette_digest(folder)
        raise UserError(
            "nothing was asked of the network: nothing was recorded",
            hint="a task that needs no network is better off with `mode: none`",
        )
    return tapes.write(folder, entries, [bodies])


def _attempt(task: TaskSpec, world: World, folder: Path) -> Attempt:
    """Of no run: its files go when the recording is done."""
    files = RolloutFolder(folder)
    files.fresh()
    return Attempt(
        task=task, number=0, world=world, folder=files, watch=Stopwatch(world.clocks.ticks)
    )
