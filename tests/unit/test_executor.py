"""Many rollouts: resumed, retried, stopped; and the folder they are written to."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import UserError
from sandbox.formats import jsonfile, records
from sandbox.formats.records import MOST_PATCH_BYTES, read_results, read_submissions
from sandbox.model.record import FaultRecord, Rollout, VerdictRecord
from sandbox.model.task import Digest, TaskId
from sandbox.rollout.executor import Job, execute
from sandbox.rollout.observer import Observer
from sandbox.rollout.outdir import Manifest, OutFolder, choose_out

DIGEST = Digest("sha256:" + "1" * 64)
MANIFEST = Manifest(agent="nop", runtime="fake", tasks=dict.fromkeys("abc", DIGEST), attempts=1)


def ended(task: str = "a", attempt: int = 0, reward: float = 1.0) -> Rollout:
    verdict = VerdictRecord(reward=reward, resolved=reward == 1, reason="", checks={})
    return replace(void(task, attempt), fault=None, verdict=verdict)


def void(task: str = "a", attempt: int = 0, *, retry: bool = True) -> Rollout:
    return Rollout(
        task=TaskId(task),
        task_digest=DIGEST,
        attempt=attempt,
        agent="nop",
        runtime="fake",
        started="2024-05-15T12:00:00Z",
        fault=FaultRecord(code="runtime", message="gone", retry=retry),
    )


class Worker:
    """Jobs whose runs give what was listed for them, one after the other."""

    def __init__(self, **results: list[Rollout | BaseException]) -> None:
        self.left = results
        self.ran: list[str] = []

    def jobs(self) -> list[Job]:
        return [Job(task=TaskId(t), attempt=0, run=self._run(t)) for t in self.left]

    def _run(self, task: str) -> Callable[[], Rollout]:
        def run() -> Rollout:
            self.ran.append(task)
            result = self.left[task].pop(0)
            if isinstance(result, BaseException):
                raise result
            return result

        return run


class Watcher(Observer):
    def __init__(self, stop_after: int = 0) -> None:
        self.plans: list[tuple[int, int]] = []
        self.ends: list[str] = []
        self._stop_after = stop_after

    def planned(self, total: int, finished: int) -> None:
        self.plans.append((total, finished))

    def ended(self, rollout: Rollout) -> None:
        self.ends.append(rollout.task)
        if len(self.ends) == self._stop_after:
            raise KeyboardInterrupt


def run(
    path: Path,
    worker: Worker,
    *,
    retries: int = 1,
    workers: int = 1,
    watcher: Watcher | None = None,
    cancelled: threading.Event | None = None,
) -> list[Rollout]:
    with OutFolder(path, MANIFEST) as out:
        return execute(
            worker.jobs(),
            out,
            watcher or Watcher(),
            workers=workers,
            retries=retries,
            cancelled=cancelled or threading.Event(),
        )


def test_every_job_s_rollout_comes_back_in_the_jobs_order(tmp_path: Path):
    worker = Worker(c=[ended("c")], a=[ended("a", reward=0)], b=[void("b", retry=False)])
    watcher = Watcher()
    done = run(tmp_path, worker, workers=3, watcher=watcher)
    assert [r.task for r in done] == ["c", "a", "b"]
    assert watcher.plans == [(3, 0)]
    assert sorted(watcher.ends) == ["a", "b", "c"]
    assert sorted(r.task for r in read_results(tmp_path / "results.jsonl")) == ["a", "b", "c"]


def test_what_has_a_verdict_is_not_run_again(tmp_path: Path):
    run(tmp_path, Worker(a=[ended("a", reward=0)], b=[ended("b")]))
    again, watcher = Worker(a=[], b=[], c=[ended("c")]), Watcher()
    done = run(tmp_path, again, watcher=watcher)
    assert again.ran == ["c"]
    assert watcher.plans == [(3, 2)]
    assert [r.reward for r in done] == [0, 1, 1]


def test_what_was_void_is_run_again_next_time(tmp_path: Path):
    run(tmp_path, Worker(a=[void(retry=False)]))
    assert run(tmp_path, Worker(a=[ended()])) == [ended()]
    assert run(tmp_path, Worker(a=[])) == [ended()]


def test_a_verdict_on_a_task_that_has_changed_since_does_not_count(tmp_path: Path):
    run(tmp_path, Worker(a=[replace(ended(), task_digest=Digest("sha256:other"))]))
    worker = Worker(a=[ended()])
    run(tmp_path, worker)
    assert worker.ran == ["a"]


@pytest.mark.parametrize(
    ("results", "retries", "runs", "reward"),
    [
        ([void(), ended()], 1, 2, 1.0),
        ([void(), void(), ended()], 1, 2, None),
        ([void(), void(), ended()], 2, 3, 1.0),
        ([void(), ended()], 0, 1, None),
        ([void(retry=False), ended()], 5, 1, None),
        ([ended(reward=0), ended()], 5, 1, 0.0),
        ([void(), ended(reward=0), ended()], 5, 2, 0.0),
    ],
)
def test_faults_are_tried_again_and_nothing_else_is(tmp_path, results, retries, runs, reward):
    worker = Worker(a=list(results))
    (done,) = run(tmp_path, worker, retries=retries)
    assert (len(worker.ran), done.reward) == (runs, reward)


def test_nothing_is_tried_again_once_the_run_is_stopped(tmp_path: Path):
    cancelled = threading.Event()
    cancelled.set()
    worker = Worker(a=[void(), ended()])
    run(tmp_path, worker, retries=5, cancelled=cancelled)
    assert worker.ran == ["a"]


def test_a_result_is_on_disk_before_the_next_job_ends(tmp_path: Path):
    counts = []

    class Looking(Watcher):
        def ended(self, rollout: Rollout) -> None:
            counts.append(len(read_results(tmp_path / "results.jsonl")))

    run(tmp_path, Worker(a=[ended("a")], b=[ended("b")], c=[ended("c")]), watcher=Looking())
    assert counts == [1, 2, 3]


def test_stopping_keeps_what_has_ended_and_begins_nothing_more(tmp_path: Path):
    cancelled = threading.Event()
    worker = Worker(a=[ended("a")], b=[ended("b")], c=[ended("c")])
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, worker, watcher=Watcher(stop_after=1), cancelled=cancelled)
    assert cancelled.is_set()
    assert [r.task for r in read_results(tmp_path / "results.jsonl")] == ["a"]
    again = Worker(a=[], b=[ended("b")], c=[ended("c")])
    assert len(run(tmp_path, again)) == 3


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("our bug"), KeyboardInterrupt(), SystemExit(3)]
)
def test_an_error_that_nobody_expected_is_loud_and_not_a_score(tmp_path: Path, error):
    cancelled = threading.Event()
    with pytest.raises(type(error)):
        run(tmp_path, Worker(a=[error], b=[ended("b")]), cancelled=cancelled)
    assert cancelled.is_set()
    assert "a" not in [r.task for r in read_results(tmp_path / "results.jsonl")]


def test_no_jobs_are_no_rollouts(tmp_path: Path):
    assert run(tmp_path, Worker()) == []


def test_a_torn_last_result_is_run_again(tmp_path: Path):
    run(tmp_path, Worker(a=[ended("a")], b=[ended("b")]))
    path = tmp_path / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    worker = Worker(a=[], b=[ended("b")])
    run(tmp_path, worker)
    assert worker.ran == ["b"]
    assert [r.task for r in read_results(path)] == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"agent": "oracle"}, "agent `nop`, not `oracle`"),
        ({"runtime": "docker"}, "runtime `fake`, not `docker`"),
        ({"graded": "x"}, "verdicts on another submissions file"),
    ],
)
def test_another_run_s_folder_is_left_alone(tmp_path: Path, change, says):
    run(tmp_path, Worker(a=[ended()]))
    before = (tmp_path / "run.json").read_bytes()
    with (
        pytest.raises(UserError, match=says) as caught,
        OutFolder(tmp_path, replace(MANIFEST, **change)),
    ):
        pass
    assert "--out" in caught.value.hint
    assert (tmp_path / "run.json").read_bytes() == before
    run(tmp_path, Worker(a=[]))


def test_results_without_a_manifest_are_somebody_else_s(tmp_path: Path):
    (tmp_path / "results.jsonl").write_text("")
    with (
        pytest.raises(UserError, match=r"holds results but no run\.json"),
        OutFolder(tmp_path, MANIFEST),
    ):
        pass


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', '{"schema": 2, "agent": "nop"}'])
def test_a_damaged_manifest_is_told_by_name(tmp_path: Path, text: str):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UserError, match=r"run\.json"), OutFolder(tmp_path, MANIFEST):
        pass
    assert not (tmp_path / ".lease").exists()


def test_one_run_at_a_time_writes_to_a_folder(tmp_path: Path):
    with (
        OutFolder(tmp_path, MANIFEST),
        pytest.raises(UserError, match="being written by another run"),
        OutFolder(tmp_path, MANIFEST),
    ):
        pass
    with OutFolder(tmp_path, MANIFEST):
        pass


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"), OutFolder(tmp_path / "file", MANIFEST):
        pass


@pytest.mark.parametrize("graded", ["", "sha256:1"])
def test_what_was_submitted_is_kept_for_grading_again(tmp_path: Path, graded: str):
    """Also where it was graded: of predictions, say, there is no other file in our words."""
    with OutFolder(tmp_path, replace(MANIFEST, graded=graded)) as out:
        for record, patch in ((ended("a"), b"diff\n"), (ended("b", 1), b"\xff"), (void("c"), b"x")):
            out.rollout(record.task, record.attempt).write_patch(patch)
            out.add(record)
    lines = read_submissions(tmp_path / "submissions.jsonl")
    assert [(x.task, x.attempt, x.data) for x in lines] == [("a", 0, b"diff\n"), ("b", 1, b"\xff")]


def test_no_submission_is_too_large_for_the_file_to_be_read_again(tmp_path: Path):
    """Control characters are six bytes each in JSON; whoever is graded chooses the patch."""
    sizes = {TaskId("a"): 12 << 20, TaskId("b"): MOST_PATCH_BYTES + 1}
    for _ in range(2):
        with OutFolder(tmp_path, replace(MANIFEST, graded="sha256:1")) as out:
            for task, size in sizes.items():
                out.rollout(task, 0).write_patch(b"\1" * size)
                out.add(ended(task))
        sizes = {}
    (line,) = read_submissions(tmp_path / "submissions.jsonl")
    assert (line.task, len(line.data)) == ("a", 12 << 20)


def test_the_same_run_leaves_the_same_submissions_whatever_ended_first(tmp_path: Path):
    done = [ended("b"), ended("a", 1), ended("a", 0), ended("a", 10)]
    files = []
    for number, order in enumerate((done, done[::-1], sorted(done, key=repr))):
        with OutFolder(tmp_path / str(number), MANIFEST) as out:
            for record in order:
                patch = f"{record.task} {record.attempt}\n\u2028".encode()
                out.rollout(record.task, record.attempt).write_patch(patch)
                out.add(record)
        files.append((tmp_path / str(number) / "submissions.jsonl").read_bytes())
    lines = read_submissions(tmp_path / "0" / "submissions.jsonl")
    assert [(x.task, x.attempt) for x in lines] == [("a", 0), ("a", 1), ("a", 10), ("b", 0)]
    assert len(set(files)) == 1


def test_what_was_submitted_can_be_graded_after_a_task_was_run_twice(tmp_path: Path):
    """A result that was torn is run again: its submission must not stand there twice."""
    for _ in range(2):
        with OutFolder(tmp_path, MANIFEST) as out:
            out.rollout(TaskId("a"), 0).write_patch(b"diff\n")
            out.add(ended("a"))
        (tmp_path / "results.jsonl").write_bytes(b"")
    assert len(read_submissions(tmp_path / "submissions.jsonl")) == 1


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ({}, "run-1"),
        ({"run-1": 2}, "run-2"),
        ({"run-1": 1}, "run-1"),
        ({"run-1": 0}, "run-1"),
        ({"run-1": 2, "run-2": 1}, "run-2"),
        ({"run-9": 2, "run-10": 2}, "run-11"),
        ({"run-x": 2, "other-5": 2, "run-1-2": 2}, "run-1"),
    ],
)
def test_the_last_run_is_gone_on_with_unless_it_is_finished(tmp_path, there, chosen):
    for name, count in there.items():
        with records.Appender(tmp_path / name / "results.jsonl") as out:
            for i in range(count):
                out.append(ended("a", i))
            out.append(void("a", 9))
        jsonfile.write(tmp_path / name / "run.json", jsonfile.dumps(MANIFEST))
    assert choose_out(tmp_path, "run", MANIFEST, wanted=2) == tmp_path / chosen


def test_a_run_is_finished_when_each_task_has_a_verdict_per_attempt(tmp_path: Path):
    two = replace(MANIFEST, tasks={"a": DIGEST, "b": DIGEST})
    with OutFolder(tmp_path / "run-1", two) as out:
        out.add(ended("a"))
        assert choose_out(tmp_path, "run", two) == tmp_path / "run-1"
        out.add(void("b"))
        assert choose_out(tmp_path, "run", two) == tmp_path / "run-1"
        out.add(ended("b"))
    assert choose_out(tmp_path, "run", two) == tmp_path / "run-2"


@pytest.mark.parametrize("change", [{"agent": "oracle"}, {"attempts": 2}, {"tasks": {"x": DIGEST}}])
def test_another_run_is_not_gone_on_with_by_itself(tmp_path: Path, change):
    with OutFolder(tmp_path / "run-1", MANIFEST):
        pass
    assert choose_out(tmp_path, "run", MANIFEST) == tmp_path / "run-1"
    assert choose_out(tmp_path, "run", replace(MANIFEST, **change)) == tmp_path / "run-2"


def test_a_folder_without_a_manifest_is_used_only_while_it_holds_nothing(tmp_path: Path):
    (tmp_path / "run-1").mkdir()
    assert choose_out(tmp_path, "run", MANIFEST) == tmp_path / "run-1"
    (tmp_path / "run-1" / "results.jsonl").write_text("")
    assert choose_out(tmp_path, "run", MANIFEST) == tmp_path / "run-2"


def test_the_manifest_says_what_the_folder_is_a_run_of(tmp_path: Path):
    run(tmp_path, Worker())
    manifest = json.loads((tmp_path / "run.json").read_text())
    assert (manifest["agent"], manifest["runtime"], manifest["attempts"]) == ("nop", "fake", 1)
    assert manifest["tasks"]["a"] == DIGEST
