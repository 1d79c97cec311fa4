"""The process that answers a box: python -m sandbox.runtime.network.process

A process of its own, so that what a box says is not parsed beside hidden tests, and so that in
replay it has no network at all, whatever a bug would have it do. It lives as long as its standard
input is open: however its owner dies, it goes too.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from sandbox.runtime.network.answers import Answers, Source
from sandbox.runtime.network.authority import Authority
from sandbox.runtime.network.log import NetworkLog
from sandbox.runtime.network.player import Player
from sandbox.runtime.network.server import Server, listening
from sandbox.runtime.network.settings import Settings, settings_of

SOCKET, CERTIFICATES = "wire.sock", "certificates.pem"
_NEW_USER, _NEW_NETWORK = 0x1000_0000, 0x4000_0000


def main() -> None:
    # ^C is for our owner, who ends us in good order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = settings_of(sys.stdin.buffer.readline())
    apart = settings.mode == "replay" and without_network()
    folder = Path(settings.folder)
    authority = Authority()
    (folder / CERTIFICATES).write_bytes(authority.certificate)
    listener = listening(folder, SOCKET)
    log = NetworkLog(Path(settings.log))
    spool = Path(settings.scratch) if settings.mode == "open" else None
    server = Server(listener, answers_for(settings), authority, log, spool=spool)
    threading.Thread(target=server.serve, daemon=True).start()
    sys.stdout.write(json.dumps({"ready": True, "apart": apart}) + "\n")
    sys.stdout.flush()
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)


def answers_for(settings: Settings) -> Answers:
    """The frozen index knows most; then what was recorded, or the world."""
    sources = []
    if settings.mode == "replay":
        bodies = {sha256: Path(path) for sha256, path in settings.bodies.items()}
        player = Player(settings.entries, bodies)
        sources.append(Source("cassette", "served", player.answer))
    else:
        # Only here: in replay there is nothing that could ask anybody.
        from sandbox.runtime.network.recorder import Recorder  # noqa: PLC0415
        from sandbox.runtime.network.upstream import Upstream  # noqa: PLC0415

        scratch = Path(settings.scratch)
        world = Upstream(scratch, instead=settings.instead, ca_file=settings.ca_file)
        if settings.mode == "record":
            sources.append(Source("network", "recorded", Recorder(world, scratch).answer))
        else:
            sources.append(Source("network", "passed", world.answer))
    return Answers(tuple(sources), settings.cassette, settings.remedy)


def without_network() -> bool:
    """Leave the machine's network for an empty one, if the kernel lets us."""
    libc = ctypes.CDLL(None, use_errno=True)
    with suppress(AttributeError):
        return libc.unshare(_NEW_NETWORK) == 0 or libc.unshare(_NEW_USER | _NEW_NETWORK) == 0
    return False


if __name__ == "__main__":
    main()
