"""Makes containers: in as few round trips as the engine allows."""

import re
import threading
from collections.abc import Callable

import docker.errors

from sandbox.errors import RuntimeFault
from sandbox.runtime import changeset
from sandbox.runtime.docker import config
from sandbox.runtime.docker.channel import Channel
from sandbox.runtime.docker.container import Container
from sandbox.runtime.docker.engine import ANYTHING, CALL_SECONDS, Allowed, Engine, faults
from sandbox.runtime.docker.images import Loaded
from sandbox.runtime.docker.main import program
from sandbox.runtime.docker.profile import profile_for
from sandbox.runtime.docker.restore import ask, restore
from sandbox.runtime.docker.still import Holder
from sandbox.runtime.docker.wire import attach
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.store import Store

SMALL_FILES, SMALL_PROCESSES = 4096, 16384
_RAISED_LIMIT = re.compile(r"\b(set)?rlimit", re.IGNORECASE)
"""In the words of a runtime that may not raise one; not the call prlimit64, in a profile."""


class Maker:
    def __init__(
        self,
        engine: Engine,
        store: Store,
        images: Loaded,
        holder: Holder,
        labels: Callable[[], dict[str, str]],
    ) -> None:
        self._engine = engine
        self._store = store
        self._images = images
        self._holder = holder
        self._labels = labels
        self._learning = threading.Lock()

    def make(self, spec: BoxSpec) -> Container:
        """A container that runs, with everything in it that the spec names."""
        config.check(spec)
        snapshot = changeset.check(spec)
        container = self._within_limits(spec)
        try:
            if snapshot is not None:
                restore(container, snapshot)
        except BaseException:
            container.remove()
            raise
        return container

    def _within_limits(self, spec: BoxSpec) -> Container:
        """Several boxes may find out together what the engine cannot give: one looks what it can."""
        while True:
            allowed = self._engine.allowed
            try:
                return self._make(spec, allowed)
            except RuntimeFault as e:
                if not _RAISED_LIMIT.search(str(e)):
                    raise
                with self._learning:
                    if self._engine.allowed == allowed:
                        if allowed != ANYTHING:
                            raise
                        self._engine.allowed = self._learn_limits(spec)

    def _make(self, spec: BoxSpec, allowed: Allowed) -> Container:
        container = self._create(spec, allowed)
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

    def _create(self, spec: BoxSpec, allowed: Allowed) -> Container:
        try:
            return self._created(spec, allowed)
        except RuntimeFault as e:
            if not isinstance(e.__cause__, docker.errors.NotFound):
                raise
            self._images.forget(spec)  # somebody removed it from the engine
            return self._created(spec, allowed)

    def _created(self, spec: BoxSpec, allowed: Allowed) -> Container:
        image = self._images.ready(spec)  # which may take long; then the clock begins
        held = self._holder.hold(spec)
        try:
            made = config.create(
                self._engine,
                spec,
                image=image,
                labels=self._labels(),
                seccomp=profile_for(self._engine, self._store),
                allowed=allowed,
                held=held,
            )
        except BaseException:
            if held is not None:
                held.remove()
            raise
        return Container(self._engine, made, held=held, umask=spec.umask)

    def _learn_limits(self, spec: BoxSpec) -> Allowed:
        """An engine without CAP_SYS_RESOURCE cannot raise limits: find out what it has itself."""
        try:
            container = self._make(spec, Allowed(files=0))
        except RuntimeFault as e:
            if not _RAISED_LIMIT.search(str(e)):
                raise
            # Podman adds limits of its own where none are named: name what any process has.
            return Allowed(SMALL_FILES, SMALL_PROCESSES)
        try:
            said = ask(container, ["sh", "-c", "ulimit -H -n"])
        finally:
            container.remove()
        return Allowed(files=int(said) if said.strip().isdigit() else 0)
