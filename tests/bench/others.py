"""What our runtimes are compared with: Docker without us, bubblewrap, the kernel itself."""

import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import docker
import docker.errors

from sandbox.runtime.spec import Image
from tests.bench import clock as m
from tests.bench.clock import Clock, until_prompt
from tests.bench.product import CHANGE_200, CHANGED, LIMITS, PAYLOAD, SECONDS, payload_tar

LABEL = "stillroom.bench"
MEMORY = f"{LIMITS.memory_mib}m"
_RAW_BOXES = 7


class DockerRun:
    """`docker run --rm`, as one would type it. The limits cost nothing that can be measured."""

    name = "docker run"

    def __init__(self, image: Image, token: str) -> None:
        limits = ["--memory", MEMORY, "--pids-limit", str(LIMITS.pids)]
        options = ["--rm", "--network", "none", "--label", f"{LABEL}={token}", *limits]
        self._argv = ["docker", "run", *options, image.digest, "true"]

    def round(self, clock: Clock) -> None:
        with clock.timed(m.LIFE):
            _run(self._argv)

    def close(self) -> None: ...


class NaiveSdk:
    """The Docker SDK as its documentation shows it: a sleeper, and exec_run for each command."""

    name = "Docker SDK"

    def __init__(self, image: Image, token: str) -> None:
        self._client: Any = docker.from_env(timeout=SECONDS)
        self._image = image.digest
        self._labels = {LABEL: token}
        self._archive = payload_tar()

    def start(self, image: str | None = None) -> Any:
        container = self._client.containers.create(
            image or self._image,
            ["sleep", "infinity"],
            network_mode="none",
            mem_limit=MEMORY,
            pids_limit=LIMITS.pids,
            labels=self._labels,
        )
        try:
            container.start()
        except BaseException:
            container.remove(force=True)
            raise
        return container

    def true(self, container: Any) -> None:
        assert container.exec_run(["true"]).exit_code == 0

    def round(self, clock: Clock) -> None:
        began = time.perf_counter()
        container = self.start()
        try:
            clock.note(m.CREATE, began)
            self.true(container)
            first = clock.note(m.FIRST, began)
            self._everything(container, clock)
        except BaseException:
            container.remove(force=True)
            raise
        # What `reset` is without one: another container.
        began = time.perf_counter()
        container.remove(force=True)
        container = self.start()
        try:
            clock.note(m.RESET, began)
            self.true(container)
            clock.note(m.RESET_FIRST, began)
        finally:
            began = time.perf_counter()
            container.remove(force=True)
            clock.add(m.LIFE, first + clock.note(m.DESTROY, began))

    def close(self) -> None:
        """Whatever went wrong, none of our containers stays."""
        mine = {"label": f"{LABEL}={self._labels[LABEL]}"}
        for container in self._client.containers.list(all=True, filters=mine):
            with suppress(docker.errors.DockerException):
                container.remove(force=True)
        self._client.close()

    def _everything(self, container: Any, clock: Clock) -> None:
        with clock.optional(m.EXEC):
            self.true(container)
        with clock.optional(m.PUT):
            assert container.put_archive("/tmp", self._archive)
        with clock.optional(m.GET):
            assert sum(map(len, container.get_archive("/tmp/payload")[0])) > len(PAYLOAD)
        with clock.attempt(m.PTY):
            self._terminal(container, clock)
        done = container.exec_run(["sh", "-c", CHANGE_200])
        assert done.exit_code == 0, done.output
        with clock.optional(m.CHANGES):
            assert len(container.diff()) >= CHANGED
        with clock.attempt(m.FORK):
            self._fork(container, clock)

    def _terminal(self, container: Any, clock: Clock) -> None:
        began = time.perf_counter()
        made = self._client.api.exec_create(container.id, ["sh"], stdin=True, tty=True)
        stream = self._client.api.exec_start(made["Id"], tty=True, socket=True)
        try:
            until_prompt(stream.fileno())
            clock.note(m.PTY, began)
        finally:
            stream.close()
            with suppress(ValueError):  # the SDK keeps the connection by it, and trips over itself
                stream._response.close()

    def _fork(self, container: Any, clock: Clock) -> None:
        began = time.perf_counter()
        image = container.commit()
        try:
            other = self.start(image.id)
            try:
                self.true(other)
                clock.note(m.FORK, began)
            finally:
                other.remove(force=True)
        finally:
            self._client.images.remove(image.id, force=True)


class Bubblewrap:
    """One program in a sandbox of its own; there is no coming back to it."""

    def __init__(self, image: Image, folder: Path, program: str = "bwrap") -> None:
        self._program, self._folder, self._number = program, folder, 0
        self._lowers = [str(layer.folder) for layer in image.layers]
        said = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
        self._overlay = "--overlay-src" in said.stdout + said.stderr
        self.name = "bubblewrap" if self._overlay else "bubblewrap, root read-only"

    def round(self, clock: Clock) -> None:
        self._number += 1
        own = self._folder / f"bwrap.{self._number}"
        began = time.perf_counter()
        base = ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
        _run([self._program, "--unshare-all", "--die-with-parent", *self._root(own), *base, "true"])
        clock.note(m.FIRST, began)
        began_removal = time.perf_counter()
        shutil.rmtree(own, ignore_errors=True)
        clock.add(m.LIFE, clock.ms[m.FIRST][-1] + (time.perf_counter() - began_removal) * 1e3)

    def close(self) -> None: ...

    def _root(self, own: Path) -> list[str]:
        if not self._overlay:
            return ["--ro-bind", self._lowers[-1], "/"]
        for name in ("upper", "work"):
            (own / name).mkdir(parents=True)
        sources = [word for lower in self._lowers for word in ("--overlay-src", lower)]
        return [*sources, "--overlay", str(own / "upper"), str(own / "work"), "/"]


class Raw:
    """The kernel's own limit, by a program in C that stays up: see raw.c."""

    def __init__(self, image: Image, folder: Path, *, mapped: bool) -> None:
        self.name = "raw limit, mapped" if mapped else "raw limit"
        self._word = "mapped\n" if mapped else "plain\n"
        own = folder / self._word.strip()
        own.mkdir()
        program = own / "raw"
        source = Path(__file__).with_name("raw.c")
        _run(["cc", "-O2", "-o", str(program), str(source)])
        lowers = [str(layer.folder) for layer in reversed(image.layers)]
        self._process = subprocess.Popen(
            [str(program), str(own), *lowers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def round(self, clock: Clock) -> None:
        """Several in a row, of which the median counts: what a subject before us still does in the
        background, our own runtimes among them, must not make the limit look worse."""
        clock.add(m.FIRST, median(self._one() for _ in range(_RAW_BOXES)))

    def _one(self) -> float:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(self._word)
        answer = self._process.stdout.readline().strip()
        if not answer.isdigit():
            raise OSError(f"raw: {answer or 'it has died'}")
        return int(answer) / 1e3

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


def _run(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode:
        raise OSError(f"{argv[0]}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
