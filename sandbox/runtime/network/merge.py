"""An old recording and a new one make the next: what is the same stays as it was, to the byte."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.runtime.network.entry import Entry

Series = tuple[str, str | None]


def merged(old: Iterable[Entry], new: Iterable[Entry]) -> tuple[Entry, ...]:
    """A series that was asked for again is replaced as a whole; others stay.

    In an order that no scheduling of threads decides, so that a recording that says the same is the
    same bytes.
    """
    before, after = _series(old), {k: _trimmed(s) for k, s in _series(new).items()}
    found = {
        key: _unless_same(before.get(key, []), after[key]) if key in after else before[key]
        for key in before | after
    }
    ordered = sorted(found.items(), key=lambda item: _place(item[0], item[1]))
    return tuple(entry for _, entries in ordered for entry in entries)


def _series(entries: Iterable[Entry]) -> dict[Series, list[Entry]]:
    found: dict[Series, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.series, []).append(entry)
    return found


def _trimmed(entries: list[Entry]) -> list[Entry]:
    """The last answer is given again and again anyway."""
    end = len(entries)
    while end > 1 and entries[end - 1].same_answer(entries[end - 2]):
        end -= 1
    return entries[:end]


def _unless_same(old: list[Entry], new: list[Entry]) -> list[Entry]:
    same = len(old) == len(new) and all(a.same_answer(b) for a, b in zip(old, new, strict=True))
    return old if same else new


def _place(series: Series, entries: list[Entry]) -> tuple[str, str, str, bool, str]:
    """Who accepts nothing is not the same as who was not asked."""
    key, accept = series
    return entries[0].url, entries[0].method, key, accept is not None, accept or ""
