"""Programs that are waited for: subprocess, multiprocessing, whose semaphores have a deadline."""

import multiprocessing
import queue
import subprocess
import time
from contextlib import suppress

from tell import now, waits


def told(answers: "multiprocessing.Queue[float]") -> None:
    answers.put(time.time())


def main() -> None:
    with waits(), suppress(subprocess.TimeoutExpired):
        subprocess.run(["sleep", "20"], timeout=0.2, check=False)
    with waits():
        multiprocessing.Semaphore(0).acquire(timeout=0.2)
    with waits():
        multiprocessing.Event().wait(0.2)
    answers: multiprocessing.Queue[float] = multiprocessing.Queue()
    with waits(), suppress(queue.Empty):
        answers.get(timeout=0.2)
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        answers = context.Queue()
        child = context.Process(target=told, args=(answers,))
        child.start()
        now(answers.get(timeout=60))
        child.join()


if __name__ == "__main__":
    main()
