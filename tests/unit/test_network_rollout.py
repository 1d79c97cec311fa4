"""A rollout on the recorded network: what its box is given, what is written down, and faults."""

import hashlib
import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import NetworkFault, SpecError, UserError
from sandbox.formats.taskfile import load_task
from sandbox.model.step import Action, Observation, Submit
from sandbox.model.task import NetworkSpec
from sandbox.rollout.agents import Nop
from sandbox.rollout.recording import Wish, instead_of, pin, record, record_all, running
from sandbox.rollout.run import Attempt, rollout
from sandbox.runtime.base import Box, ExecResult
from sandbox.runtime.fake import Call, FakeBox, said
from sandbox.runtime.network import cassette
from sandbox.runtime.network.attach import FOLDER, WIRE
from sandbox.runtime.network.cassette import cassette_digest
from sandbox.runtime.store import Store
from tests.support.homes import TASK, GivenDepot, write_home
from tests.support.webs import ask_at, entry, serving
from tests.unit.test_drive import Acting, Actor, an_attempt, answers, boxes


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all of them: programs are built once for each."""
    return Store(tmp_path_factory.mktemp("store"))


def reply(box: FakeBox, call: Call) -> ExecResult | None:
    return said("") if call.argv[0] == WIRE else answers(box, call)


def socket_of(box: FakeBox) -> Path:
    return next(m.source for m in box.spec.mounts if m.target == FOLDER)


def on_a_network(home: Path, store: Store, *, mode: Any = "replay") -> Attempt:
    """An attempt at a task whose cassette holds one page."""
    attempt = an_attempt(home, reply)
    attempt.world.depot.store = store
    tape = home / "task_specs" / "toy-1" / "tape"
    found = home / "found"
    found.mkdir()
    (found / hashlib.sha256(b"page").hexdigest()).write_bytes(b"page")
    digest = cassette.write(tape, [entry("http://a.test/page", b"page")], [found])
    network = NetworkSpec(mode="replay", cassette="tape", digest=digest)
    if mode != "replay":
        network = NetworkSpec(mode=mode)
    return replace(attempt, task=replace(attempt.task, network=network))


def test_the_agents_box_is_answered_and_the_verifiers_is_not(tmp_path: Path, compiled: Store):
    attempt = on_a_network(tmp_path, compiled)
    heard: list[tuple[int, bytes]] = []

    def act(seen: Observation) -> Action:
        agent = boxes(attempt)[0]
        heard.extend(
            (said.status, said.body[:9])
            for said in (ask_at(socket_of(agent), f"http://a.test/{n}") for n in ("page", "other"))
        )
        return Submit()

    record = rollout(attempt, Acting(Actor(act)), threading.Event())
    assert (record.fault, record.network, record.reward) == (None, "replay", 1.0)
    assert heard == [(200, b"page"), (403, b"stillroom")]
    agent, verifier = boxes(attempt)
    assert agent.spec.env["SSL_CERT_FILE"].startswith(FOLDER)
    assert agent.spec.env["LEVEL"] == "3"
    assert [c.argv[0] for c in agent.calls].count(WIRE) == 1
    assert {m.target for m in agent.spec.mounts} >= {FOLDER, WIRE}
    assert [m.target for m in verifier.spec.mounts if "stillroom" in m.target] == []
    lines = (attempt.folder.path / "network.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["served", "refused"]


def test_a_rollout_without_a_network_is_as_it_was(tmp_path: Path):
    attempt = an_attempt(tmp_path)
    record = rollout(attempt, Nop(), threading.Event())
    assert record.network == "none"
    assert not (attempt.folder.path / "network.jsonl").exists()
    assert "SSL_CERT_FILE" not in boxes(attempt)[0].spec.env


def test_open_is_recorded_as_such(tmp_path: Path, compiled: Store):
    record = rollout(on_a_network(tmp_path, compiled, mode="open"), Nop(), threading.Event())
    assert (record.fault, record.network) == (None, "open")


def test_an_answerer_that_dies_makes_the_rollout_void(tmp_path: Path, compiled: Store):
    attempt = on_a_network(tmp_path, compiled)

    def act(seen: Observation) -> Action:
        os.kill(answerer_of(socket_of(boxes(attempt)[0])), signal.SIGKILL)
        return Submit()

    record = rollout(attempt, Acting(Actor(act)), threading.Event())
    assert record.verdict is None
    assert record.fault is not None
    assert (record.fault.code, record.fault.retry) == ("network", True)


def answerer_of(folder: Path) -> int:
    """The process that has this folder's parent as its scratch: ours, and the only one."""
    for path in Path("/proc/self/task").glob("*/children"):
        for pid in path.read_text().split():
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"sandbox.runtime.network.process" in command:
                return int(pid)
    raise AssertionError(f"nobody answers {folder}")


def test_a_wire_that_cannot_listen_makes_the_rollout_void(tmp_path: Path, compiled: Store):
    def broken(box: FakeBox, call: Call) -> ExecResult | None:
        if call.argv[0] == WIRE:
            return ExecResult(exit_code=3, stdout=b"", stderr=b"wire: port 80: taken\n")
        return answers(box, call)

    attempt = on_a_network(tmp_path, compiled)
    attempt.world.runtime._reply = broken  # type: ignore[attr-defined]
    record = rollout(attempt, Nop(), threading.Event())
    assert record.fault is not None
    assert record.fault.code == "network"
    assert "port 80: taken" in record.fault.message


def test_another_cassette_than_the_pinned_makes_the_rollout_void(tmp_path: Path, compiled: Store):
    attempt = on_a_network(tmp_path, compiled)
    index = tmp_path / "task_specs" / "toy-1" / "tape" / "index.jsonl"
    index.write_text(index.read_text().replace("200", "404"))
    record = rollout(attempt, Nop(), threading.Event())
    assert record.fault is not None
    assert (record.fault.code, record.fault.retry) == ("network", False)


def asking(*urls: str):
    def work(attempt: Attempt, box: Box) -> None:
        assert isinstance(box, FakeBox)
        for url in urls:
            assert ask_at(socket_of(box), url).status == 200

    return work


def test_a_recording_is_pinned_and_then_played(tmp_path: Path, compiled: Store):
    attempt = an_attempt(tmp_path, reply)
    attempt.world.depot.store = compiled
    counted = iter(range(100))
    with serving(lambda _: (200, {}, b"%d" % next(counted)), tmp_path) as web:
        wish = Wish(instead={"a.test:80": web.place})
        twice = asking("http://a.test/x", "http://a.test/x", "http://a.test/y")
        done = record(attempt.task, attempt.world, twice, wish)
        assert (done.answers, done.fresh) == (3, 3)
        assert pin(attempt.task) == (cassette_digest(done.path.parent), True)
        task = load_task(tmp_path, "toy-1")
        assert task.network.mode == "replay"
        assert task.digest != attempt.task.digest

        again = record(task, attempt.world, asking("http://a.test/y"), wish)
        assert (again.answers, again.fresh) == (3, 1)
        assert pin(task)[1]
        task = load_task(tmp_path, "toy-1")
        assert not pin(task)[1]

        fresh = replace(wish, fresh=True)
        assert record(task, attempt.world, asking("http://a.test/y"), fresh).answers == 1
    bodies = [p.read_bytes() for p in (done.path.parent / "blobs").iterdir()]
    assert bodies == [b"4"], "what nobody names any more is gone"


def test_recording_the_same_again_is_the_same_digest(tmp_path: Path, compiled: Store):
    attempt = an_attempt(tmp_path, reply)
    attempt.world.depot.store = compiled
    with serving(lambda _: (200, {}, b"same"), tmp_path) as web:
        wish = Wish(instead={"a.test:80": web.place})
        work = asking("http://a.test/b", "http://a.test/a", "http://a.test/a")
        done = record(attempt.task, attempt.world, work, wish)
        first = done.path.read_bytes()
        done = record(attempt.task, attempt.world, work, replace(wish, fresh=True))
    assert (done.fresh, done.path.read_bytes()) == (0, first)


def test_a_command_that_fails_records_nothing(tmp_path: Path, compiled: Store):
    def failing(box: FakeBox, call: Call) -> ExecResult | None:
        if call.argv[0] == "curl":
            return ExecResult(exit_code=7, stdout=b"", stderr=b"no\n")
        return reply(box, call)

    attempt = an_attempt(tmp_path, failing)
    attempt.world.depot.store = compiled
    shown: list[ExecResult] = []
    with pytest.raises(UserError, match="ended with 7"):
        list(
            record_all(
                attempt.task,
                attempt.world,
                running(["curl", "http://a.test/"], shown.append),
                Wish(),
                opened=True,
            )
        )
    assert [s.stderr for s in shown] == [b"no\n"]
    assert not (tmp_path / "task_specs" / "toy-1" / "cassette").exists()


def test_a_recording_of_nothing_is_none(tmp_path: Path, compiled: Store):
    attempt = an_attempt(tmp_path, reply)
    attempt.world.depot.store = compiled
    with pytest.raises(UserError, match="nothing was asked"):
        record(attempt.task, attempt.world, asking(), Wish())


def test_a_task_that_says_another_mode_is_not_rewritten(tmp_path: Path, compiled: Store):
    attempt = on_a_network(tmp_path, compiled)
    home = write_home(tmp_path, TASK + "network:\n  mode: none\n")
    task = replace(load_task(home, "toy-1"), network=NetworkSpec(cassette="tape"))
    with pytest.raises(SpecError) as caught:
        pin(task)
    assert f"digest: {cassette_digest(tmp_path / 'task_specs/toy-1/tape')}" in caught.value.hint
    del attempt


@pytest.mark.parametrize("word", ["a.test", "a.test:80", "a.test=b:1", "a.test:80=b", "a b:1=c:2"])
def test_a_place_that_is_none_is_an_error_that_shows_one(word: str):
    with pytest.raises(UserError) as caught:
        instead_of([word])
    assert "--instead" in caught.value.hint


def test_places_are_told_by_host_and_port():
    assert instead_of(["A.test:443=127.0.0.1:8443"]) == {"a.test:443": "127.0.0.1:8443"}


def test_a_cassette_is_looked_at_once(tmp_path: Path, compiled: Store):
    attempt = on_a_network(tmp_path, compiled)
    depot = GivenDepot(compiled, lambda *_: None)
    first = depot.cassette(attempt.task)
    assert first is not None
    next(iter(first.bodies.values())).write_bytes(b"changed")
    assert depot.cassette(attempt.task) is first
    with pytest.raises(NetworkFault, match="is not what was pinned"):
        GivenDepot(compiled, lambda *_: None).cassette(attempt.task)
