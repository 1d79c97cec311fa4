"""What the tables of honest submissions and of wrong ones count."""

from sandbox.audit.source.trees import Source, by_path
from sandbox.formats.digest import Entry
from sandbox.model.record import FaultRecord, Rollout, VerdictRecord
from sandbox.model.task import Digest, TaskId
from tests.bench import honest, mutants

TASK = TaskId("toy-1")


def a_rollout(reward: float | None) -> Rollout:
    verdict = None
    if reward is not None:
        verdict = VerdictRecord(reward=reward, resolved=reward == 1, reason="why", checks={})
    return Rollout(
        task=TASK,
        task_digest=Digest("sha256:" + "1" * 64),
        attempt=0,
        agent="a",
        runtime="fake",
        started="2024-05-15T12:00:00Z",
        verdict=verdict,
        fault=None if verdict else FaultRecord(code="runtime", message="gone"),
    )


def test_a_variation_that_is_not_resolved_is_wrong_and_a_void_one_is_neither():
    done = {"tabs": 1.0, "slow": 0.5, "untyped": None}
    row = honest.row(TASK, {name: a_rollout(r) for name, r in done.items()})
    assert (row.variations, row.resolved) == (3, 1)
    assert row.wrong == ("slow: why",)
    assert row.void == ("untyped: gone",)


def test_a_partial_one_has_to_get_what_a_bare_run_gives():
    done = {
        "partial 1, naive": 0.5, "partial 1, judged": 0.5,
        "partial 2, naive": 0.5, "partial 2, judged": 0.25,
    }  # fmt: skip
    row = honest.row(TASK, {name: a_rollout(r) for name, r in done.items()})
    assert (row.variations, row.partial, row.partials) == (0, 1, 2)
    assert row.wrong == ("partial 2: 0.25 where a bare run gives 0.5",)


def test_partial_ones_lack_some_of_the_hunks_and_never_all_of_nothing():
    texts = ("a\nb\nc\nd\n", "A\nb\nC\nd\n")
    source = Source(*(by_path([Entry("a.py", "file", t.encode())]) for t in texts))
    found = dict(honest.partials(source))
    assert len(found) == honest.PARTIALS
    assert all(f not in (source.base, source.solved) for f in found.values())
    assert dict(honest.partials(source)) == found


def test_what_is_explained_does_not_count_against_the_tests():
    done = {"mutant a-1 one": 0.5, "mutant a-2 two": 1.0, "mutant a-3 three": 1.0, "nothing 1": 0.0}
    row = mutants.row(TASK, {n: a_rollout(r) for n, r in done.items()}, {"a-2": "the same"})
    assert (row.killed, row.score) == (1, 0.5)
    assert row.survived == ("a-3 three",)
    assert row.explained == ("a-2 two: the same",)
