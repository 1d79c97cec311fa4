"""Makes containers: in as few round trips as the engine allows."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import docker.errors

from sandbox.errors import RuntimeFault
from sandbox.runtime import changeset
from sandbox.runtime.base import PATH, BoxSpec
from sandbox.runtime.docker import config
from sandbox.runtime.docker.channel import SEND_SECONDS, Channel, Command
from sandbox.runtime.docker.container import Container
from sandbox.runtime.docker.engine import CALL_SECONDS, Engine, faults
from sandbox.runtime.docker.images import Loaded
from sandbox.runtime.docker.programs import WentDown, run, run_from_outside
from sandbox.runtime.docker.wire import attach

REMOVED_AT_ONCE = 500
HELP_SECONDS = 120.0


class Maker:
    def __init__(
        self, engine: Engine, images: Loaded, labels: Callable[[], dict[str, str]]
    ) -> None:
        self._engine = engine
        self._images = images
        self._labels = labels

    def make(self, spec: BoxSpec) -> Container:
        """A container that runs, with everything in it that the spec names."""
        config.check(spec)
        snapshot = changeset.check(spec)
        try:
            container = self._make(spec)
        except RuntimeFault as e:
            if "rlimit" not in str(e) or self._engine.most_files is not None:
                raise
            self._learn_limits(spec)
            container = self._make(spec)
        try:
            if snapshot is not None:
                _restore(container, snapshot)
        except BaseException:
            container.remove()
            raise
        return container

    def _make(self, spec: BoxSpec) -> Container:
        container = self._create(spec)
        try:
            with faults("reach the box"):
                sock = attach(self._engine.address, self._engine.version, container.id)
            sock.settimeout(SEND_SECONDS)
            channel = Channel(sock)
            container.connect(channel, serves=False)
            with faults("start the box"):
                self._engine.api.start(container.id)
            container.connect(channel, serves=channel.ready(CALL_SECONDS))
        except BaseException:
            container.remove()
            raise
        return container

    def _create(self, spec: BoxSpec) -> Container:
        image = self._images.ready(spec)
        try:
            made = config.create(self._engine, spec, image=image, labels=self._labels())
        except RuntimeFault as e:
            if not isinstance(e.__cause__, docker.errors.NotFound):
                raise
            self._images.forget(spec)  # somebody removed it from the engine
            image = self._images.ready(spec)
            made = config.create(self._engine, spec, image=image, labels=self._labels())
        return Container(self._engine, made)

    def _learn_limits(self, spec: BoxSpec) -> None:
        """An engine without CAP_SYS_RESOURCE cannot raise limits: find out what it has itself."""
        self._engine.most_files = 0
        container = self._make(spec)
        try:
            said = ask(container, ["sh", "-c", "ulimit -H -n"])
        finally:
            container.remove()
        self._engine.most_files = int(said) if said.strip().isdigit() else 0


def ask(container: Container, argv: list[str]) -> bytes:
    """What a program of ours prints, in a box in which nothing else has run yet."""
    command = Command(
        argv=argv, env={"PATH": PATH}, cwd="/", user=(0, 0), input=b"", output_bytes=4096
    )
    try:
        if container.channel is not None:
            ended = run(container.channel, command, HELP_SECONDS)
        else:
            ended = run_from_outside(container, command, HELP_SECONDS)
    except WentDown as e:
        raise RuntimeFault("the box ended while it was made") from e
    if ended.exit_code != 0:
        raise RuntimeFault(f"cannot run {argv[0]}: {ended.stderr.decode(errors='replace').strip()}")
    return ended.stdout


def _restore(container: Container, tar: Path) -> None:
    """Into a box that runs: its first process comes from the image, not from the snapshot."""
    with tempfile.TemporaryFile() as plain:
        removed = changeset.split(tar, plain)
        for start in range(0, len(removed), REMOVED_AT_ONCE):
            ask(container, ["rm", "-rf", "--", *removed[start : start + REMOVED_AT_ONCE]])
        plain.seek(0)
        with faults("put the snapshot into the box"):
            container.engine.api.put_archive(container.id, "/", plain)
