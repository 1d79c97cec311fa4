# ruff: noqa: PTH123, PTH208
# This runs in a box's first process: os calls, and nothing that costs memory.
"""Signals to what a terminal's foreground runs, and to all that it has started.

Sent from within the box, by its numbers, and without starting a program: a box that is full, or
that spins on every processor, may not be able to.
"""

from __future__ import annotations

import os

FOREGROUND, SESSION, NONE = "foreground", "session", "none"


def signalled(shell: int, number: int, scope: str, more: list[int]) -> list[int]:
    """Signal the family of the terminal's session that `shell` leads, then `more`; 0 only looks.

    `scope`: whose family: the terminal's foreground group, the session, or nobody's. The leader is
    signalled only if it is among `more`. Returns who was there.
    """
    found = _family(shell, scope) if scope != NONE else []
    return [pid for pid in dict.fromkeys([*found, *more]) if pid > 1 and _sent(pid, number)]


def _family(shell: int, scope: str) -> list[int]:
    table = {int(name): _stat(name) for name in os.listdir("/proc") if name.isdigit()}
    rows = {pid: row for pid, row in table.items() if row}
    leader = rows.get(shell)
    if leader is None:
        return []
    column, wanted = (3, leader[3]) if scope == SESSION else (2, leader[5])
    found = {pid for pid, row in rows.items() if row[column] == wanted and pid != shell}
    if wanted <= 0:
        return []
    grown = True
    while grown:
        more = {pid for pid, row in rows.items() if row[1] in found} - found
        grown = bool(more)
        found |= more
    return sorted(found - {shell})


def _stat(name: str) -> tuple[int, ...]:
    """Its id, parent, group, session, terminal and the terminal's foreground group."""
    try:
        with open(f"/proc/{name}/stat", "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
    except OSError:
        return ()
    return (int(name), *(int(field) for field in fields[1:6]))


def _sent(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True
