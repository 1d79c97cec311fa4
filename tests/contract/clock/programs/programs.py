"""Programs that are waited for: subprocess, multiprocessing, whose semaphores have a deadline."""

import multiprocessing
import queue
import subprocess
import time

from tell import now, waits


def told(answers: "multiprocessing.Queue[float]") -> None:
    answers.put(time.time())


def main() -> None:
    with waits():
        try:
            subprocess.run(["sleep", "20"], timeout=0.2, check=False)
        except subprocess.TimeoutExpired:
            pass
    with waits():
        multiprocessing.Semaphore(0).acquire(timeout=0.2)
    with waits():
        multiprocessing.Event().wait(0.2)
    answers: multiprocessing.Queue[float] = multiprocessing.Queue()
    with waits():
        try:
            answers.get(timeout=0.2)
        except queue.Empty:
            pass
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        answers = context.Queue()
        child = context.Process(target=told, args=(answers,))
        child.start()
        now(answers.get(timeout=60))
        child.join()


if __name__ == "__main__":
    main()
