"""What the answering process is told when it starts: one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from sandbox.runtime.network.entry import Entry, entry_of

Mode = Literal["replay", "record", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Paths are this machine's; a box is told `cassette` and `remedy` only."""

    mode: Mode
    log: str
    """network.jsonl."""
    folder: str = ""
    """What the box sees of us: the socket and the certificate are made in it."""
    scratch: str = ""
    """For bodies that come from the real network, and recordings."""
    cassette: str = ""
    remedy: str = ""
    entries: tuple[Entry, ...] = ()
    bodies: Mapping[str, str] = field(default_factory=dict)
    """Hash → file, each of which has been looked at."""
    index: str = ""
    """The lock of the frozen package index, if there is one."""
    blobs: str = ""
    """The folder with its files, named by hash."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """`host:port` → `host:port` that is asked in its place: a mirror of this machine's."""
    ca_file: str = ""
    """Whom to trust in the real network; default: whom this machine trusts."""


def settings_line(settings: Settings) -> bytes:
    return json.dumps(asdict(settings)).encode() + b"\n"


def settings_of(line: bytes) -> Settings:
    data = json.loads(line)
    return Settings(**{**data, "entries": tuple(entry_of(e) for e in data["entries"])})
