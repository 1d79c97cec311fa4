"""Many rollouts: N threads, faults retried, each result on disk as it ends, stopped by ^C."""

import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from sandbox.model.record import Rollout
from sandbox.model.task import TaskId
from sandbox.rollout.observer import Observer
from sandbox.rollout.outdir import OutFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One rollout to be done. `run` may be called again after a fault."""

    task: TaskId
    attempt: int
    run: Callable[[], Rollout]


def execute(
    jobs: Iterable[Job],
    out: OutFolder,
    observer: Observer,
    *,
    workers: int,
    retries: int,
    cancelled: threading.Event,
) -> list[Rollout]:
    """Every job's rollout, the finished ones of an earlier run included, in the jobs' order.

    On KeyboardInterrupt, or an error that is ours, no further job begins, `cancelled` is set and
    the error goes on: whoever owns the runtime ends what is running by closing it.
    """
    wanted = list(jobs)
    before = out.finished()
    results = {(j.task, j.attempt): before.get((j.task, j.attempt)) for j in wanted}
    left = [j for j in wanted if results[j.task, j.attempt] is None]
    observer.planned(len(wanted), len(wanted) - len(left))
    ended: queue.SimpleQueue[Future[Rollout]] = queue.SimpleQueue()

    def once(job: Job) -> Rollout:
        observer.started(job.task, job.attempt)
        return _with_retries(job, retries, cancelled, observer)

    pool = ThreadPoolExecutor(workers, thread_name_prefix="rollout")
    try:
        for job in left:
            pool.submit(once, job).add_done_callback(ended.put)
        for _ in left:
            done = ended.get().result()
            out.add(done)
            results[done.task, done.attempt] = done
            observer.ended(done)
    except BaseException:
        cancelled.set()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return [r for r in results.values() if r is not None]


def _with_retries(
    job: Job, retries: int, cancelled: threading.Event, observer: Observer
) -> Rollout:
    """Only faults are tried again: a verdict, whatever it is, stands."""
    done = job.run()
    for _ in range(retries):
        if done.fault is None or not done.fault.retry or cancelled.is_set():
            break
        observer.retried(done)
        done = job.run()
    return done
