"""index.lock.jsonl: a frozen package index, one file of it a line, so that a change is one line, too."""

import json
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sandbox.errors import SpecError
from sandbox.formats.jsonfile import decode
from sandbox.formats.jsonfile import write as write_text
from sandbox.formats.shape import Loc, parse, plain
from sandbox.formats.yamlfile import read_text
from sandbox.model.index import AptPin, IndexHead, IndexLock, NpmPin, Pin, PypiPin, moment

KINDS: dict[str, type[PypiPin | NpmPin | AptPin]] = {"pypi": PypiPin, "npm": NpmPin, "apt": AptPin}
ROOTS = {
    "pypi": "https://files.pythonhosted.org/",
    "npm": "https://registry.npmjs.org/",
    "apt": "http://deb.debian.org/debian/",
}
"""Where the files of each kind are. A mirror's address has no place in a lock."""
RECORD = "record it again: stillroom record"
_NAMES = {
    "pypi": r"[a-z0-9]+(-[a-z0-9]+)*",
    "npm": r"(@[A-Za-z0-9~_.-]+/)?[A-Za-z0-9~_.-]+",
    "apt": r"[a-z0-9][a-z0-9+.-]+",
}
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~:_!-]*")


def load(path: Path) -> IndexLock:
    """Raises SpecError with file, line and hint."""
    lines = list(enumerate(read_text(path).splitlines(), start=1))
    head: IndexHead | None = None
    pins: list[Pin] = []
    seen: dict[str, int] = {}
    for number, text in lines:
        where = f"{path}:{number}"
        data = decode(text, str(path), line=number)
        if head is None:
            head = _head(data, where)
            continue
        pin = _pin(data, where)
        if (first := seen.setdefault(pin.url, number)) != number:
            raise SpecError(f"{pin.filename} is on line {first}, too", where=where, hint=RECORD)
        pins.append(pin)
    if head is None:
        raise SpecError("the file is empty", where=f"{path}:1", hint=RECORD)
    return IndexLock(head=head, pins=ordered(pins))


def dumps(lock: IndexLock) -> str:
    """The same lock is the same text: sorted, without what is not set."""
    found = [lock.head, *ordered(lock.pins)]
    return "".join(f"{_line(one)}\n" for one in found)


def ordered(pins: Iterable[Pin]) -> tuple[Pin, ...]:
    return tuple(sorted(pins, key=_order))


def write(path: Path, lock: IndexLock) -> None:
    write_text(path, dumps(lock))


def _line(one: object) -> str:
    data = {k: v for k, v in plain(one).items() if v not in (None, (), [])}
    return json.dumps(data, ensure_ascii=False, separators=(", ", ": "))


def _order(pin: Pin) -> tuple[str, str, str, str, str]:
    return (pin.kind, pin.name, pin.version, pin.filename, pin.url)


def _head(data: Any, where: str) -> IndexHead:
    if not isinstance(data, dict) or data.get("kind") != "index":
        raise SpecError('the first line should have "kind": "index"', where=where, hint=RECORD)
    head = parse(data, IndexHead, _at(where))
    try:
        moment(head.pin)
    except ValueError:
        hint = "a date looks like 2024-05-15T12:00:00Z"
        raise SpecError(f"`pin` is no date: {head.pin}", where=where, hint=hint) from None
    return head


def _pin(data: Any, where: str) -> Pin:
    kind = data.get("kind") if isinstance(data, dict) else None
    shape = KINDS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        hint = f"known kinds: {', '.join(KINDS)}"
        raise SpecError(f"`kind` is {json.dumps(kind)}", where=where, hint=hint)
    pin = parse(data, shape, _at(where))
    for message, hint in _rules(pin):
        raise SpecError(message, where=where, hint=hint)
    return pin


def _rules(pin: Pin) -> Iterator[tuple[str, str]]:
    root = ROOTS[pin.kind]
    if not re.fullmatch(_NAMES[pin.kind], pin.name):
        yield f"`name` is no name of {pin.kind}: {pin.name!r}", "write it as the index does"
    if not _VERSION.fullmatch(pin.version):
        yield f"`version` is no version: {pin.version!r}", RECORD
    if not re.fullmatch(r"[0-9a-f]{64}", pin.sha256):
        yield "`sha256` should be 64 hex digits", RECORD
    if pin.size < 0:
        yield "`size` is below 0", RECORD
    if not _below(root, pin.url):
        yield f"`url` is not below {root}: {pin.url}", "a mirror's address has no place in a lock"
    elif unquote(pin.url).removeprefix(root).rpartition("/")[2] != posixpath.basename(pin.filename):
        yield f"`url` does not end in {pin.filename}", RECORD
    match pin:
        case PypiPin() if pin.uploaded and not _is_date(pin.uploaded):
            yield f"`uploaded` is no date: {pin.uploaded}", "as in 2024-05-15T12:00:00Z"
        case AptPin():
            yield from _stanza_rules(pin)
        case NpmPin() if pin.manifest.get("version", pin.version) != pin.version:
            yield "`manifest` is of another version", RECORD
        case _:
            pass


def _stanza_rules(pin: AptPin) -> Iterator[tuple[str, str]]:
    if unquote(pin.url.removeprefix(ROOTS["apt"])) != pin.filename:
        yield f"`url` and `filename` differ: {pin.filename}", RECORD
    wanted = {
        "Package": pin.name,
        "Version": pin.version,
        "Filename": pin.filename,
        "Size": str(pin.size),
        "SHA256": pin.sha256,
    }
    lines = pin.stanza.splitlines()
    for key, value in wanted.items():
        if f"{key}: {value}" not in lines:
            yield f"`stanza` does not say {key}: {value}", RECORD
    if "" in lines:
        yield "`stanza` has an empty line, where a record ends", RECORD


def _below(root: str, url: str) -> bool:
    path = urlsplit(url).path
    plain_url = url.startswith(root) and not urlsplit(url).query and url.isascii()
    return plain_url and not {"", ".", ".."} & set(unquote(path).split("/")[1:])


def _is_date(text: str) -> bool:
    try:
        moment(text)
    except ValueError:
        return False
    return True


def _at(where: str) -> Any:
    def place(loc: Loc) -> str:
        del loc
        return where

    return place
