"""Gives what was recorded, in its order."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from sandbox.runtime.network.asked import key_of
from sandbox.runtime.network.entry import Entry, answer_of
from sandbox.runtime.network.message import Request, Response


class Player:
    """For one box: how far each series has got is its own. Safe to use from several threads."""

    def __init__(self, entries: Iterable[Entry], bodies: Mapping[str, Path]) -> None:
        self._bodies = bodies
        self._series: dict[tuple[str, str | None], list[Entry]] = {}
        self._next: dict[tuple[str, str | None], int] = {}
        self._lock = threading.Lock()
        for entry in entries:
            self._series.setdefault(entry.series, []).append(entry)

    def answer(self, request: Request) -> Response | None:
        if found := self._recorded(request):
            return found
        if request.method == "HEAD":  # a part of what is known, and no step in its series
            return self._recorded(replace(request, method="GET"), step=0)
        return None

    def _recorded(self, request: Request, step: int = 1) -> Response | None:
        key = key_of(request)
        for series in ((key, request.header("accept")), (key, None)):
            if entries := self._series.get(series):
                with self._lock:
                    place = self._next.get(series, 0)
                    self._next[series] = min(place + step, len(entries) - 1)
                entry = entries[place]
                return answer_of(entry, self._bodies[entry.sha256])
        return None
