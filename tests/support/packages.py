"""Packages of a few bytes, a lock that lists them, and a server that has nothing else."""

import base64
import gzip
import hashlib
import io
import socket
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from sandbox.formats import indexfile
from sandbox.model.index import AptPin, IndexHead, IndexLock, NpmPin, Pin, PypiPin
from sandbox.runtime.network.attach import connected
from sandbox.runtime.network.settings import Settings
from sandbox.runtime.store import Store
from tests.support.webs import carried_at

PIN = "2024-05-15T12:00:00Z"
PYPI, NPM = "https://files.pythonhosted.org/packages/00", "https://registry.npmjs.org"
DEBIAN = "http://deb.debian.org/debian"


def lock_of(*pins: Pin) -> IndexLock:
    return IndexLock(head=IndexHead(pin=PIN), pins=pins)


def wheel(store: Store, name: str = "toy", version: str = "1.0", requires: str = "") -> PypiPin:
    plain = name.replace("-", "_")
    info = f"{plain}-{version}.dist-info"
    needed = f"Requires-Dist: {requires}\n" if requires else ""
    files = {
        f"{plain}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: toy\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},{_record(text)},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "".join(f"{line}\n" for line in [*lines, f"{info}/RECORD,,"])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    file = f"{plain}-{version}-py3-none-any.whl"
    return PypiPin(
        name=name,
        version=version,
        filename=file,
        url=f"{PYPI}/{file}",
        sha256=_keep(store, out.getvalue()),
        size=len(out.getvalue()),
        requires_python=">=3.7",
        uploaded="2024-01-02T03:04:05Z",
    )


def tarball(
    store: Store,
    name: str = "toy",
    version: str = "1.0.0",
    needs: Mapping[str, str] | None = None,
    tags: tuple[str, ...] = (),
) -> NpmPin:
    more = f', "dependencies": {{{_pairs(needs)}}}' if needs else ""
    text = f'{{"name": "{name}", "version": "{version}"{more}}}'
    data = _tgz({"package/package.json": text, "package/index.js": f"// {version}\n"})
    file = f"{name.rpartition('/')[2]}-{version}.tgz"
    return NpmPin(
        name=name,
        version=version,
        filename=file,
        url=f"{NPM}/{name}/-/{file}",
        sha256=_keep(store, data),
        size=len(data),
        integrity=f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}",
        shasum=hashlib.sha1(data, usedforsecurity=False).hexdigest(),
        tags=tags,
        manifest={"dependencies": dict(needs)} if needs else {},
    )


def deb(store: Store, name: str = "toy", version: str = "1.0-1") -> AptPin:
    said = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\n"
    said += "Maintainer: Nobody <nobody@example.org>\nDescription: a toy\n"
    data = _ar({
        "debian-binary": b"2.0\n",
        "control.tar.gz": _tgz({"./control": said}),
        "data.tar.gz": _tgz({f"./usr/share/{name}/toy": f"{version}\n"}),
    })  # fmt: skip
    path = f"pool/main/t/{name}/{name}_{version}_amd64.deb"
    sha256 = _keep(store, data)
    return AptPin(
        name=name,
        version=version,
        filename=path,
        url=f"{DEBIAN}/{path}",
        sha256=sha256,
        size=len(data),
        arch="amd64",
        stanza=f"{said}Filename: {path}\nSize: {len(data)}\nSHA256: {sha256}\n",
    )


@contextmanager
def serving(store: Store, lock: IndexLock, folder: Path) -> Iterator[dict[str, str]]:
    """A network with this index and nothing else: variables for a client on this machine."""
    indexfile.write(folder / "index.lock.jsonl", lock)
    settings = Settings(
        mode="replay",
        log=str(folder / "network.jsonl"),
        index=str(folder / "index.lock.jsonl"),
        blobs=str(store.blob("")),
    )
    with connected(store, folder / "wire", settings) as link:
        front = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=_forward, args=(front, link.folder))
        thread.start()
        proxy = f"http://127.0.0.1:{front.getsockname()[1]}"
        certificates = str(link.folder / "certificates.pem")
        trusted = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
        proxies = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        try:
            yield dict.fromkeys(trusted, certificates) | dict.fromkeys(proxies, proxy)
        finally:
            front.shutdown(socket.SHUT_RDWR)
            thread.join()
            front.close()


def _forward(front: socket.socket, folder: Path) -> None:
    """What `wire` does in a box: say which port it was, then carry bytes."""
    with ThreadPoolExecutor(64) as pool:
        while True:
            try:
                client, _ = front.accept()
            except OSError:
                return
            pool.submit(_connect, client, folder)


def _connect(client: socket.socket, folder: Path) -> None:
    with client, carried_at(folder, 3128) as behind:
        behind.settimeout(None)
        back = threading.Thread(target=_carry, args=(behind, client), daemon=True)
        back.start()
        _carry(client, behind)
        back.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _keep(store: Store, data: bytes) -> str:
    sha256 = hashlib.sha256(data).hexdigest()
    path = store.blob(sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return sha256


def _record(text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"sha256={digest.rstrip('=')}"


def _pairs(needs: Mapping[str, str]) -> str:
    return ", ".join(f'"{name}": "{wanted}"' for name, wanted in needs.items())


def _tgz(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(out.getvalue(), mtime=0)


def _ar(members: Mapping[str, bytes]) -> bytes:
    parts = [b"!<arch>\n"]
    for name, data in members.items():
        parts += [f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode(), data]
        parts.append(b"\n" * (len(data) % 2))
    return b"".join(parts)
