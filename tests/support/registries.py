"""A real registry on loopback, and images to push to it."""

import contextlib
import hashlib
import json
import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sandbox.runtime.spec import Image
from tests.support.waiting import eventually

CONFIG = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {root}}}}}
http: {{addr: "{host}"}}
"""
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
Press = Callable[[bytes], bytes]
"""How a layer is compressed."""


@dataclass(frozen=True)
class Registry:
    """`docker-registry`, its data under `root`."""

    root: Path
    host: str

    def push(self, image: Image, press: Press, *, media_type: str = LAYER_TYPE) -> str:
        """The image's address, once it is there."""
        layout = self.root / "layout"
        digest = oci_layout(layout, image, press, media_type)
        target = f"docker://{self.host}/toy:1"
        copy = ("skopeo", "copy", "-q", "--preserve-digests", "--dest-tls-verify=false")
        subprocess.run([*copy, f"oci:{layout}", target], check=True)
        shutil.rmtree(layout)
        return f"{self.host}/toy@{digest}"

    def push_layout(self, layout: Path, tag: str = "1", *, to: str = "theirs:1") -> str:
        """What a layout has, all platforms of it; returns its name here."""
        copy = ("skopeo", "copy", "-q", "--all", "--preserve-digests", "--dest-tls-verify=false")
        subprocess.run([*copy, f"oci:{layout}:{tag}", f"docker://{self.host}/{to}"], check=True)
        return f"{self.host}/{to}"

    def blob(self, digest: str) -> Path:
        """Where it keeps one."""
        name = digest.removeprefix("sha256:")
        return self.root / "docker/registry/v2/blobs/sha256" / name[:2] / name / "data"


@contextlib.contextmanager
def running_registry(root: Path) -> Iterator[Registry]:
    root.mkdir()
    made = Registry(root, f"127.0.0.1:{free_port()}")
    (root / "config.yml").write_text(CONFIG.format(root=root, host=made.host))
    with (root / "log").open("wb") as log:
        process = subprocess.Popen(
            ["docker-registry", "serve", str(root / "config.yml")], stdout=log, stderr=log
        )
    try:
        assert eventually(lambda: answers(made.host), 30), (root / "log").read_text()
        yield made
    finally:
        process.terminate()
        process.wait()


def answers(host: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{host}/v2/", timeout=5) as said:
            return bool(said.status == 200)
    except OSError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def oci_layout(folder: Path, image: Image, press: Press, media_type: str) -> str:
    """Write the image as an OCI layout; returns its manifest's digest."""
    layers = [descriptor(folder, press(e.tar.read_bytes()), media_type) for e in image.layers]
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(folder, image.config.read_bytes(), CONFIG_TYPE),
        "layers": layers,
    }
    found = descriptor(folder, json.dumps(manifest).encode(), MANIFEST)
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [found]}))
    return str(found["digest"])


def descriptor(folder: Path, content: bytes, media_type: str) -> dict[str, object]:
    name = hashlib.sha256(content).hexdigest()
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / name).write_bytes(content)
    return {"mediaType": media_type, "digest": f"sha256:{name}", "size": len(content)}


@contextlib.contextmanager
def endless_registry(image: Image) -> Iterator[str]:
    """The address of an image whose first layer never ends."""
    config = image.config.read_bytes()
    described = {"mediaType": CONFIG_TYPE, "digest": image.digest, "size": len(config)}
    layer = {"mediaType": LAYER_TYPE, "digest": f"sha256:{'1' * 64}", "size": 1 << 40}
    manifest = json.dumps(
        {"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": [layer]}
    ).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.close_connection = True
            if "/blobs/" in self.path:
                self.head("application/octet-stream", 1 << 40)
                with contextlib.suppress(OSError):  # until nobody listens
                    while True:
                        self.wfile.write(bytes(1 << 16))
            else:
                body = manifest if "/manifests/" in self.path else b"{}"
                self.head(MANIFEST, len(body))
                self.wfile.write(body)

        def head(self, media_type: str, size: int) -> None:
            self.send_response(200)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(size))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    try:
        name = hashlib.sha256(manifest).hexdigest()
        yield f"127.0.0.1:{server.server_port}/toy@sha256:{name}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def transfers_of(ref: str) -> list[int]:
    """Ids of the programs that are fetching it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended while we looked
            if f"docker://{ref}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
