"""The process that answers a box, to be run with `python -m`.

A process of its own, so that what a box says is not parsed beside hidden tests, and so that in
replay it has no network at all, whatever a bug would have it do. It lives as long as its standard
input is open: however its owner dies, it goes too.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path

from sandbox.runtime.network.answers import Answers, Source
from sandbox.runtime.network.authority import Authority
from sandbox.runtime.network.log import NetworkLog
from sandbox.runtime.network.message import Request, Response, is_refusal
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
    (folder / CERTIFICATES).chmod(0o644)
    listener = listening(folder, SOCKET)
    log = NetworkLog(Path(settings.log))
    spool = Path(settings.scratch) if settings.mode == "open" else None
    server = Server(listener, answers_for(settings), authority, log, spool=spool)
    serving = threading.Thread(target=server.serve, daemon=True)
    serving.start()
    tell({"apart": apart})
    while sys.stdin.buffer.readline():
        tell({"serving": serving.is_alive()})
    leave(folder)
    os._exit(0)


def leave(folder: Path) -> None:
    """Our owner does so as well, if he lives."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()  # unless it is the scratch folder, with more in it


def tell(said: dict[str, bool]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def answers_for(settings: Settings) -> Answers:
    """Who knows most of a host is asked last: a frozen index says no to what it has not."""
    sources = [Source("cassette", "served", _player(settings).answer), *_index(settings)]
    if settings.mode != "replay":
        sources = [*_index(settings, sure=True), _world(settings)]
    return Answers(tuple(sources), settings.cassette, settings.remedy)


def _player(settings: Settings) -> Player:
    bodies = {sha256: Path(path) for sha256, path in settings.bodies.items()}
    return Player(settings.entries, bodies)


def _world(settings: Settings) -> Source:
    # Imported only here: in replay there is nothing that could ask anybody.
    from sandbox.runtime.network.recorder import Recorder  # noqa: PLC0415
    from sandbox.runtime.network.upstream import Upstream  # noqa: PLC0415

    scratch = Path(settings.scratch)
    world = Upstream(scratch, instead=settings.instead, ca_file=settings.ca_file)
    if settings.mode == "record":
        return Source("network", "recorded", Recorder(world, scratch).answer)
    return Source("network", "passed", world.answer)


def _index(settings: Settings, *, sure: bool = False) -> list[Source]:
    """`sure`: only what it has. What it has not may be recorded."""
    if not settings.index:
        return []
    # Imported only here: most cassettes have none.
    from sandbox.runtime.network.index.frozen import open_index  # noqa: PLC0415

    index = open_index(Path(settings.index), Path(settings.blobs))

    def ask(request: Request) -> Response | None:
        found = index.answer(request)
        return found if found is None or not (sure and is_refusal(found)) else None

    return [Source("index", "served", ask)]


def without_network() -> bool:
    """Leave the machine's network for an empty one, if the kernel lets us."""
    libc = ctypes.CDLL(None, use_errno=True)
    return any(libc.unshare(flags) == 0 for flags in (_NEW_NETWORK, _NEW_USER | _NEW_NETWORK))


if __name__ == "__main__":
    main()
