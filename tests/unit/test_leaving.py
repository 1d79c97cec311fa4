"""How a container ends: whose processes are killed."""

import subprocess

from sandbox.runtime.docker.leaving import end


def test_a_process_that_is_not_of_the_container_is_left_alone():
    """Where the engine is elsewhere, its process ids are somebody else's here."""
    with subprocess.Popen(["sleep", "60"]) as somebody:
        try:
            end("f" * 64, somebody.pid)
            assert somebody.poll() is None
        finally:
            somebody.kill()


def test_of_a_container_that_does_not_run_there_is_nothing_to_end():
    end("f" * 64, 0)
