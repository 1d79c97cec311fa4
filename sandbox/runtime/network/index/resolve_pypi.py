"""What pip would take from PyPI."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sandbox.errors import NetworkFault
from sandbox.formats.indexfile import ROOTS
from sandbox.model.index import PypiPin, date_of
from sandbox.runtime.fetch import fetch, pypi_files
from sandbox.runtime.image.pypi import pip_report, wheel_pin
from sandbox.runtime.store import Store


def pypi_pins(
    store: Store, scratch: Path, requirements: Sequence[str], pin: datetime
) -> Iterator[PypiPin]:
    """Wheels only: an sdist runs its own code to say what it depends on."""
    for item in pip_report(scratch, requirements):
        wheel = wheel_pin(item)
        said = _said(wheel.name, wheel.file)
        urls = [str(item["download_info"]["url"]), str(said["url"])]
        path = fetch(store, urls, sha256=wheel.sha256, name=wheel.file, fault=NetworkFault)
        yield PypiPin(
            name=wheel.name,
            version=wheel.version,
            filename=wheel.file,
            url=canonical_url(path, wheel.file),
            sha256=wheel.sha256,
            size=path.stat().st_size,
            requires_python=said.get("requires-python") or None,
            uploaded=_uploaded(said, pin),
        )


def canonical_url(file: Path, name: str) -> str:
    """Where PyPI itself has it, whoever it was fetched from: its addresses are BLAKE2 hashes."""
    with file.open("rb") as f:
        found = hashlib.file_digest(f, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
    return f"{ROOTS['pypi']}packages/{found[:2]}/{found[2:4]}/{found[4:]}/{name}"


def _said(project: str, file: str) -> dict[str, Any]:
    for found in pypi_files(project):
        if found.get("filename") == file:
            return found
    raise NetworkFault(f"PyPI does not list {file}, which pip found", retry=False)


def _uploaded(said: dict[str, Any], pin: datetime) -> str | None:
    """Never after the pin: to a box that stands at it, the file would not be there yet."""
    text = said.get("upload-time")
    if not isinstance(text, str):
        return None
    try:
        return date_of(min(datetime.fromisoformat(text), pin))
    except (ValueError, TypeError):
        raise NetworkFault(f"PyPI's upload time is no date: {json.dumps(text)}") from None
