"""Downloads by hash: a file is what its sha256 says, or it is refused."""

import hashlib
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sandbox.errors import Fault, NetworkFault
from sandbox.runtime.store import Store, check_blob

PYPI = "https://pypi.org/simple"
TIMEOUT_SECONDS = 60.0
TRIES = 3

Pause = Callable[[float], None]


def fetch(store: Store, urls: Iterable[str], *, sha256: str, name: str, fault: type[Fault]) -> Path:
    """The stored file with this hash, downloaded from the first URL that serves it."""
    path = store.blob(sha256)
    if path.exists():
        check_blob(path, sha256, name, fault)
        return path
    said = []
    with store.lock(f"blob-{sha256}"):
        if path.exists():
            return path
        for url in urls:
            with store.scratch() as folder:
                try:
                    found = download(url, folder / "file")
                except NetworkFault as e:
                    said.append(str(e))
                    continue
                if found == sha256:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(folder / "file", path)  # noqa: PTH105
                    return path
            raise fault(
                f"refused: {name} from {url} is not what was pinned: "
                f"expected sha256 {sha256}, found {found}",
                retry=False,
            )
    raise NetworkFault(
        f"cannot fetch {name}: " + "; ".join(said or ["no address is known"]),
        hint="is the network up? a proxy is taken from http_proxy and https_proxy",
    )


def download(url: str, target: Path, *, pause: Pause = time.sleep) -> str:
    """Stream `url` into `target`; returns its sha256. Tries again when the connection breaks."""
    for attempt in range(TRIES):
        try:
            return _stream(url, target)
        except urllib.error.HTTPError as e:
            e.close()
            raise NetworkFault(f"{url}: HTTP {e.code}", retry=e.code >= 500) from e
        except (OSError, http.client.HTTPException) as e:
            if attempt == TRIES - 1:
                raise NetworkFault(f"{url}: {e}") from e
            pause(0.5 * 2**attempt)
    raise AssertionError("unreachable")


def _stream(url: str, target: Path) -> str:
    seen = hashlib.sha256()
    request = urllib.request.Request(url, headers={"User-Agent": "stillroom"})  # noqa: S310
    with _open(request) as response, target.open("wb") as out:
        while block := response.read(1 << 20):
            seen.update(block)
            out.write(block)
        # `read` with a size takes a connection that was cut for the end.
        if left := getattr(response, "length", None):
            raise http.client.IncompleteRead(b"", left)
    return seen.hexdigest()


def _open(request: urllib.request.Request) -> Any:
    """Not urlopen: that would go by the proxies that there were when it was first called."""
    return urllib.request.build_opener().open(request, timeout=TIMEOUT_SECONDS)


def pypi_url(project: str, file: str, *, index: str = PYPI) -> str:
    """Where the index serves `file` (PEP 691)."""
    for found in pypi_files(project, index=index):
        if found.get("filename") == file and "url" in found:
            return str(found["url"])
    raise NetworkFault(f"{index}/{project}/ does not list {file}", retry=False)


def pypi_files(project: str, *, index: str = PYPI) -> list[dict[str, Any]]:
    """What the index says of every file of a project (PEP 691)."""
    url = f"{index}/{project}/"
    page = fetch_json(url, "application/vnd.pypi.simple.v1+json")
    files = page.get("files") if isinstance(page, dict) else None
    if not isinstance(files, list) or not all(isinstance(f, dict) for f in files):
        raise NetworkFault(f"{url}: there is no list of files in the answer")
    return files


def fetch_json(url: str, accept: str) -> Any:
    """What an index answers, now: nothing is stored. Raises NetworkFault."""
    headers = {"Accept": accept, "User-Agent": "stillroom"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310
    try:
        with _open(request) as response:
            return json.load(response)
    except (OSError, ValueError, http.client.HTTPException) as e:
        if isinstance(e, urllib.error.HTTPError):
            e.close()
        raise NetworkFault(f"{url}: {e}") from e
