"""Gives a box the recorded network: a folder with a socket, a program that listens, an environment.

with connected(store, wire, settings) as link:
    spec = link.joined(spec)
    with runtime.create(spec) as box:
        link.start(box)
        ...
        link.check()
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from sandbox.errors import NetworkFault
from sandbox.model.index import IndexLock
from sandbox.runtime.base import Box
from sandbox.runtime.network.index.clients import client_environment, client_mounts
from sandbox.runtime.network.settings import Settings, settings_line
from sandbox.runtime.ready import readable
from sandbox.runtime.spec import BoxSpec, Mount
from sandbox.runtime.store import Store

FOLDER, WIRE = "/.stillroom/net", "/.stillroom/wire"
CERTIFICATES = f"{FOLDER}/certificates.pem"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
"""Where Debian, Alpine and Arch have it; Go looks nowhere else first."""
TRUST = dict.fromkeys(
    (
        *("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "AWS_CA_BUNDLE"),
        *("NODE_EXTRA_CA_CERTS", "npm_config_cafile", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO"),
        "DENO_CERT",
    ),
    CERTIFICATES,
)
"""uv takes SSL_CERT_FILE. Java has a store of its own, which no variable replaces."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
START_SECONDS, END_SECONDS = 30.0, 5.0
_INSTALL = "pip install 'stillroom[network]'"
_SAID_CHARACTERS = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A running answerer of one box."""

    folder: Path
    wire: Path
    scratch: Path
    process: subprocess.Popen[bytes]
    said: Path
    apart: bool
    """Has it no network of its own?"""
    more: tuple[Mount, ...] = ()
    more_env: Mapping[str, str] = field(default_factory=dict)
    """For the box's package managers."""

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return (
            Mount(source=self.folder, target=FOLDER),
            Mount(source=self.wire, target=WIRE),
            Mount(source=self.folder / "certificates.pem", target=BUNDLE),
            *self.more,
        )

    @property
    def env(self) -> Mapping[str, str]:
        return {**TRUST, **self.more_env}

    def joined(self, spec: BoxSpec) -> BoxSpec:
        """The same box with this network. What the task sets in its environment stays."""
        return replace(spec, mounts=(*spec.mounts, *self.mounts), env={**self.env, **spec.env})

    def start(self, box: Box) -> None:
        """Have `wire` listen in the box. Again after `kill_all` or `reset`. Raises NetworkFault."""
        command = [WIRE, "--socket", f"{FOLDER}/wire.sock"]
        done = box.exec(command, seconds=START_SECONDS, user="0:0", cwd="/")
        if done.exit_code != 0:
            said = done.stderr.decode(errors="replace").strip()
            raise NetworkFault(f"the box cannot be connected: {said or done.exit_code}")

    def check(self) -> None:
        """Raises NetworkFault when the answerer is gone: what a box did without it does not count.

        It is asked: of a process that is dying the kernel still says that it is there.
        """
        if not _asked(self.process, b"\n").get("serving"):
            said = self.said.read_text(errors="replace").strip()[-_SAID_CHARACTERS:]
            why = f": {said}" if said else ""
            raise NetworkFault(f"what answers the box's network has ended{why}")


@contextmanager
def connected(
    store: Store, wire: Path, settings: Settings, lock: IndexLock | None = None
) -> Iterator[Link]:
    """Start what answers. `settings`: its folders are filled in here; they go at the end.

    `lock`: of the frozen package index, which a box's package managers are told about.

    Raises NetworkFault when it cannot be started.
    """
    with store.scratch() as scratch, neutral(scratch) as place:
        # The folder it is in is for nobody else's eyes; a box is given only this one.
        folder = place / "net"
        folder.mkdir(mode=0o755)
        (scratch / "blobs").mkdir()
        folder.chmod(0o755)
        (scratch / "more").mkdir()
        settings = replace(settings, folder=str(folder), scratch=str(scratch))
        with _process(settings, scratch / "said") as (process, apart):
            yield Link(
                folder=folder,
                wire=wire,
                scratch=scratch,
                process=process,
                said=scratch / "said",
                apart=apart,
                more=client_mounts(lock, scratch / "more") if lock else (),
                more_env=client_environment(lock) if lock else {},
            )


@contextmanager
def neutral(scratch: Path, memory: Path = MEMORY) -> Iterator[Path]:
    """A folder for what a box has mounted, of ours alone.

    A box can read where its mounts lie within their file system. In memory that tells nothing;
    where there is none to be had, it is the scratch folder. When its owner is killed, what answers
    removes it: see `process`.
    """
    if not (os.path.ismount(memory) and os.access(memory, os.W_OK | os.X_OK)):
        yield scratch
        return
    folder = Path(tempfile.mkdtemp(prefix="stillroom-", dir=memory))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _process(settings: Settings, said: Path) -> Iterator[tuple[subprocess.Popen[bytes], bool]]:
    with said.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "sandbox.runtime.network.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    try:
        yield process, _told(process, settings, said)
    finally:
        # Its input's end is its own; a process that is stopped would not see it.
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _told(process: subprocess.Popen[bytes], settings: Settings, said: Path) -> bool:
    """Give it its settings and wait until it listens; returns whether it has no network."""
    answer = _asked(process, settings_line(settings))
    if not answer:
        why = said.read_text(errors="replace").strip()[-_SAID_CHARACTERS:]
        hint = _INSTALL if "ModuleNotFoundError" in why else ""
        raise NetworkFault(f"the recorded network cannot be started: {why}", hint=hint)
    return answer["apart"]


def _asked(process: subprocess.Popen[bytes], line: bytes) -> dict[str, bool]:
    """What it says to that; nothing when it is gone, or takes too long."""
    assert process.stdin  # noqa: S101 - for the type checker: PIPE was asked for
    assert process.stdout  # noqa: S101
    with suppress(BrokenPipeError):
        process.stdin.write(line)
        process.stdin.flush()
        if readable([process.stdout], START_SECONDS) and (answer := process.stdout.readline()):
            found: dict[str, bool] = json.loads(answer)
            return found
    return {}
