"""Asks the real network and writes down what it said."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Protocol

from sandbox.runtime.network.asked import key_of
from sandbox.runtime.network.entry import Entry, index_text
from sandbox.runtime.network.message import Request, Response
from sandbox.runtime.network.upstream import digest_of_file


class World(Protocol):
    """The real network: its bodies are files that nobody else needs."""

    def answer(self, request: Request) -> Response: ...


class Recorder:
    """Every request is asked anew, also one that was recorded: a series is recorded as such.

    `folder` becomes a cassette's: lines are added as answers come. Request headers are not
    written down, so no password of theirs is.
    """

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._folder = folder
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Response:
        response = self._world.answer(request)
        body = response.body
        if isinstance(body, bytes):
            raise TypeError("the real network's bodies are files")
        sha256 = digest_of_file(body)
        kept = self._folder / "blobs" / sha256
        entry = Entry(
            key=key_of(request),
            method=request.method,
            url=request.url,
            status=response.status,
            headers=response.headers,
            sha256=sha256,
            size=body.stat().st_size,
            accept=request.header("accept") if _varies(response) else None,
        )
        with self._lock:
            body.replace(kept)
            with (self._folder / "index.jsonl").open("a", encoding="ascii") as out:
                out.write(index_text([entry]))
        return Response(status=response.status, headers=response.headers, body=kept)


def _varies(response: Response) -> bool:
    names = [
        part.strip().lower()
        for name, value in response.headers
        if name.lower() == "vary"
        for part in value.split(",")
    ]
    return "accept" in names or "*" in names
