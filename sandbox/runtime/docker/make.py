"""Makes containers: in as few round trips as the engine allows."""

import re
from collections.abc import Callable

import docker.errors

from sandbox.errors import RuntimeFault
from sandbox.runtime import changeset
from sandbox.runtime.base import BoxSpec
from sandbox.runtime.docker import config
from sandbox.runtime.docker.channel import Channel
from sandbox.runtime.docker.container import Container
from sandbox.runtime.docker.engine import CALL_SECONDS, Engine, faults
from sandbox.runtime.docker.images import Loaded
from sandbox.runtime.docker.main import program
from sandbox.runtime.docker.profile import profile_for
from sandbox.runtime.docker.restore import ask, restore
from sandbox.runtime.docker.wire import attach
from sandbox.runtime.store import Store

SMALL_FILES, SMALL_PROCESSES = 4096, 16384
_RAISED_LIMIT = re.compile(r"\b(set)?rlimit", re.IGNORECASE)
"""In the words of a runtime that may not raise one; not the call prlimit64, in a profile."""


class Maker:
    def __init__(
        self, engine: Engine, store: Store, images: Loaded, labels: Callable[[], dict[str, str]]
    ) -> None:
        self._engine = engine
        self._store = store
        self._images = images
        self._labels = labels

    def make(self, spec: BoxSpec) -> Container:
        """A container that runs, with everything in it that the spec names."""
        config.check(spec)
        snapshot = changeset.check(spec)
        try:
            container = self._make(spec)
        except RuntimeFault as e:
            if not _RAISED_LIMIT.search(str(e)) or self._engine.most_files is not None:
                raise
            self._learn_limits(spec)
            container = self._make(spec)
        try:
            if snapshot is not None:
                restore(container, snapshot)
        except BaseException:
            container.remove()
            raise
        return container

    def _make(self, spec: BoxSpec) -> Container:
        container = self._create(spec)
        try:
            with faults("reach the box"):
                sock = attach(self._engine.address, self._engine.version, container.id)
            channel = Channel(sock)
            container.connect(channel, serves=False)
            channel.send(program())
            with faults("start the box"):
                self._engine.api.start(container.id)
            container.connect(channel, serves=channel.ready(CALL_SECONDS))
        except BaseException:
            container.remove()
            raise
        return container

    def _create(self, spec: BoxSpec) -> Container:
        try:
            return self._created(spec)
        except RuntimeFault as e:
            if not isinstance(e.__cause__, docker.errors.NotFound):
                raise
            self._images.forget(spec)  # somebody removed it from the engine
            return self._created(spec)

    def _created(self, spec: BoxSpec) -> Container:
        made = config.create(
            self._engine,
            spec,
            image=self._images.ready(spec),
            labels=self._labels(),
            seccomp=profile_for(self._engine, self._store),
        )
        return Container(self._engine, made)

    def _learn_limits(self, spec: BoxSpec) -> None:
        """An engine without CAP_SYS_RESOURCE cannot raise limits: find out what it has itself."""
        self._engine.most_files = 0
        try:
            container = self._make(spec)
        except RuntimeFault as e:
            if not _RAISED_LIMIT.search(str(e)):
                raise
            # Podman adds limits of its own where none are named: name what any process has.
            self._engine.most_files, self._engine.most_processes = SMALL_FILES, SMALL_PROCESSES
            return
        try:
            said = ask(container, ["sh", "-c", "ulimit -H -n"])
        finally:
            container.remove()
        self._engine.most_files = int(said) if said.strip().isdigit() else 0
