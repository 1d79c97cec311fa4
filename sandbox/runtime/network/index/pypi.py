"""PyPI: simple pages in HTML (PEP 503) and JSON (PEP 691), wheels, and their metadata (PEP 658)."""

import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sandbox.model.index import PypiPin
from sandbox.runtime.network.index.answers import (
    TEXT,
    answered,
    file_answer,
    json_bytes,
    not_listed,
    refusal,
    refused,
)
from sandbox.runtime.network.index.names import pypi_name
from sandbox.runtime.network.message import Request, Response

HOSTS = ("pypi.org", "pypi.python.org", "files.pythonhosted.org")
JSON = "application/vnd.pypi.simple.v1+json"
HTML = "application/vnd.pypi.simple.v1+html"
PLAIN_HTML = "text/html; charset=utf-8"
OCTETS = "application/octet-stream"
METADATA_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Pypi:
    projects: Mapping[str, Sequence[PypiPin]]
    """By normalised name."""
    files: Mapping[str, PypiPin]
    """By path on files.pythonhosted.org."""
    blob: Callable[[str], Path]
    lock: str
    """The lock's name, for those who ask for what is not in it."""

    def answer(self, request: Request) -> Response:
        parts = urlsplit(request.url)
        path = unquote(parts.path)
        if parts.hostname == "files.pythonhosted.org":
            return self._file(path, request)
        if path.rstrip("/") == "/simple":
            return self._projects(_accepted(request))
        if found := re.fullmatch(r"/simple/([^/]+)/?", path):
            return self._project(pypi_name(found[1]), request)
        return not_listed(request.url, self.lock, "pip")

    def _projects(self, kind: str) -> Response:
        names = sorted(self.projects)
        if kind == JSON:
            listed: Any = {"meta": {"api-version": "1.1"}, "projects": [{"name": n} for n in names]}
            return answered(json_bytes(listed), kind)
        return answered(
            _page("Simple index", (f'<a href="/simple/{n}/">{n}</a>' for n in names)), kind
        )

    def _project(self, name: str, request: Request) -> Response:
        pins = self.projects.get(name)
        if pins is None:
            return self._unknown(name, request)
        kind = _accepted(request)
        if kind == JSON:
            listed = {
                "meta": {"api-version": "1.1"},
                "name": name,
                "versions": list(dict.fromkeys(p.version for p in pins)),
                "files": list(map(_file_data, pins)),
            }
            return answered(json_bytes(listed), kind)
        return answered(_page(f"Links for {name}", map(_anchor, pins)), kind)

    def _unknown(self, name: str, request: Request) -> Response:
        """404; but pip keeps to itself what comes with that, and tells of a type that it cannot use."""
        if request.header("User-Agent").startswith("pip/"):
            said = refusal(name, self.lock, "pip")
            kind = f'text/plain; refused="{said.replace(chr(34), chr(39))}"'
            return refused(f"{said}\n".encode(), kind, status=200)
        return not_listed(name, self.lock, "pip")

    def _file(self, path: str, request: Request) -> Response:
        if pin := self.files.get(path):
            return file_answer(self.blob(pin.sha256), pin.sha256, request, OCTETS)
        wheel = self.files.get(path.removesuffix(".metadata"))
        if wheel and _is_wheel(wheel):
            found = wheel_metadata(self.blob(wheel.sha256))
            if found is not None:
                return answered(found, TEXT)
        return not_listed(path.rpartition("/")[2], self.lock, "pip")


def pypi(pins: Sequence[PypiPin], blob: Callable[[str], Path], lock: str) -> Pypi:
    projects: dict[str, list[PypiPin]] = {}
    for pin in sorted(pins, key=lambda p: (p.name, p.filename)):
        projects.setdefault(pypi_name(pin.name), []).append(pin)
    return Pypi(projects, {unquote(urlsplit(p.url).path): p for p in pins}, blob, lock)


def wheel_metadata(wheel: Path) -> bytes | None:
    """METADATA of a wheel: PEP 658's file is a copy of it, so none has to be kept."""
    if not zipfile.is_zipfile(wheel):
        return None
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n)]
        if len(names) != 1 or archive.getinfo(names[0]).file_size > METADATA_BYTES:
            return None
        return archive.read(names[0])


def _file_data(pin: PypiPin) -> dict[str, Any]:
    found = {
        "filename": pin.filename,
        "url": pin.url,
        "hashes": {"sha256": pin.sha256},
        "size": pin.size,
        "requires-python": pin.requires_python,
        "upload-time": pin.uploaded,
        "core-metadata": _is_wheel(pin) or None,
        "yanked": False,
    }
    return {key: value for key, value in found.items() if value is not None}


def _anchor(pin: PypiPin) -> str:
    said = [f'href="{escape(pin.url)}#sha256={pin.sha256}"']
    if pin.requires_python:
        said.append(f'data-requires-python="{escape(pin.requires_python)}"')
    if _is_wheel(pin):
        said += ['data-core-metadata="true"', 'data-dist-info-metadata="true"']
    return f"<a {' '.join(said)}>{escape(pin.filename)}</a>"


def _page(title: str, anchors: Iterable[str]) -> bytes:
    head = '<meta name="pypi:repository-version" content="1.1">'
    lines = [
        "<!DOCTYPE html>",
        f"<html><head>{head}<title>{escape(title)}</title></head><body>",
        *(f"{a}<br>" for a in anchors),
        "</body></html>",
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def _accepted(request: Request) -> str:
    """The type of page that the client likes best."""
    wishes = [_wish(w) for w in request.header("Accept", "*/*").split(",")]
    liked = {kind.replace(".latest+", ".v1+"): q for q, kind in wishes}
    best = max((JSON, HTML, "text/html"), key=lambda kind: liked.get(kind, 0.0))
    if liked.get(best, 0.0) <= 0.0 or best == "text/html":
        return PLAIN_HTML
    return best


def _wish(text: str) -> tuple[float, str]:
    kind, *parameters = (part.strip() for part in text.split(";"))
    q = next((p.partition("=")[2] for p in parameters if p.startswith("q=")), "1")
    try:
        return float(q), kind.lower()
    except ValueError:
        return 0.0, kind.lower()


def _is_wheel(pin: PypiPin) -> bool:
    return pin.filename.endswith(".whl")
