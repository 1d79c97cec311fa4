"""The engine: its address, one client, and the one place where its errors become ours."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
import docker.errors
import requests
import urllib3

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker.address import Address, connect

CALL_SECONDS = 300
"""Longer than any call should take, even with dozens of boxes starting at once."""
BRIEF_SECONDS = 15.0
"""For what makes nothing: telling, ending, removing. One container that an engine cannot end holds up
whoever asks about it, and the removal of every image: that should not take minutes to be told."""
_NO_ENGINE = "start Docker, set DOCKER_HOST, or choose the embedded runtime"
_NOT_ALLOWED = "it runs, but you may not talk to it: be root, or join the group docker"
_OVERLAYS = {"overlay2", "overlay"}
POOL = 64
"""Connections kept open; a run with more threads opens and closes some."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which limits the engine may give a container: without rights of its own, none above its."""

    files: int | None = None
    """Open files; None: no bound is known, 0: it cannot be told."""
    processes: int | None = None
    """Of one user, if it has to be named; the box's own limit is another."""


ANYTHING = Allowed()


class Engine:
    def __init__(self, host: str, *, brief_seconds: float = BRIEF_SECONDS) -> None:
        self.host = host
        self.brief_seconds = brief_seconds
        self._lock = threading.Lock()
        self._api: docker.APIClient | None = None
        self._brief: docker.APIClient | None = None
        self._podman: bool | None = None
        self._about: dict[str, Any] = {}
        self.local: bool | None = None
        """Is it on this machine? None: not known yet."""
        self.allowed = ANYTHING

    @property
    def address(self) -> Address:
        return Address.parse(self.host)

    @property
    def api(self) -> docker.APIClient:
        """The client, made on first use."""
        with self._lock:
            if self._api is None:
                self._api = self._connect(CALL_SECONDS)
            return self._api

    @property
    def brief(self) -> docker.APIClient:
        """The client for calls that make nothing."""
        with self._lock:
            if self._brief is None:
                self._brief = self._connect(self.brief_seconds)
            return self._brief

    @property
    def version(self) -> str:
        """Of the API, as agreed with the engine."""
        return str(self.api.api_version)

    @property
    def is_podman(self) -> bool:
        """Podman answers like Docker, but for some details."""
        if self._podman is None:
            with faults("ask the engine about itself"):
                parts = self.brief.version().get("Components") or []
            self._podman = any(part.get("Name") == "Podman Engine" for part in parts)
        return self._podman

    @property
    def about(self) -> dict[str, Any]:
        """What it says of itself, asked once: it takes the time of ten other questions."""
        if not self._about:
            with faults("ask the engine about itself"):
                self._about = self.brief.info()
        return self._about

    def reads_storage(self) -> bool:
        """May we read what boxes change: is the engine's storage here, and open to us?

        Once there has been a box it is known; until then the engine's own folder has to do.
        """
        if self.local is False:
            return False
        folder = str(self.about.get("DockerRootDir") or "")
        return self.about.get("Driver") in _OVERLAYS and os.access(folder, os.R_OK | os.X_OK)

    @property
    def processors(self) -> int:
        """How many the engine has."""
        return int(self.about.get("NCPU") or 1)

    def remaps_users(self) -> bool:
        options = self.about.get("SecurityOptions") or []
        return any("userns" in option or "rootless" in option for option in options)

    def close(self) -> None:
        with self._lock:
            for client in (self._api, self._brief):
                if client is not None:
                    client.close()
            self._api = self._brief = None

    def _connect(self, seconds: float) -> docker.APIClient:
        address = self.address
        try:
            connect(address).close()  # the SDK would leave its socket open when nobody answers
            return docker.APIClient(
                base_url=address.host,
                version="auto",
                timeout=seconds,  # type: ignore[arg-type]  # a fraction does as well
                max_pool_size=POOL,
            )
        except (docker.errors.DockerException, requests.RequestException, OSError) as e:
            raise RuntimeFault(
                f"no container engine answers at {address.host}: {e}",
                hint=_NOT_ALLOWED if isinstance(e, PermissionError) else _NO_ENGINE,
                retry=False,
            ) from e


def late(fault: BaseException) -> bool:
    """Did the engine not answer in time? It may do what it was asked to, later or never."""
    return isinstance(fault.__cause__, requests.Timeout)


@contextmanager
def faults(doing: str) -> Iterator[None]:
    """What the engine or the way to it throws, as a RuntimeFault that says what was being done."""
    try:
        yield
    except docker.errors.NotFound as e:
        raise RuntimeFault(f"cannot {doing}: {e.explanation or e}") from e
    except docker.errors.APIError as e:
        raise RuntimeFault(f"cannot {doing}: {e.explanation or e}") from e
    except (
        docker.errors.DockerException,
        requests.RequestException,
        urllib3.exceptions.HTTPError,
        OSError,
    ) as e:
        raise RuntimeFault(
            f"cannot {doing}: {e}", hint="is the container engine still running?"
        ) from e
