"""One transfer from a registry into a folder, by the program `skopeo`, within bounds.

It brings what we need not rebuild: TLS, proxies, credentials, mirrors and the registries' ways.
"""

import contextlib
import ipaddress
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.runtime.image.layout import ARCH

MISMATCH = re.compile(r"digest.* (did|does) not match|(did|does) not match.* digest", re.IGNORECASE)
LEASHED = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
"""PR_SET_PDEATHSIG, SIGKILL: the program must not outlive us, not even when we are killed."""
LOOK_SECONDS = 0.1
SAID_BYTES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    stall_seconds: float = 60.0
    """Without a byte more, the registry counts as away."""
    wall_seconds: float = 3600.0
    bytes: int = 32 << 30
    """Of the transfer, and again of each layer when it is uncompressed."""


class UnavailableError(Exception):
    """Why an image is not to be had from there. `lasting`: nor will it be in a minute."""

    def __init__(self, why: str, *, lasting: bool = False, hint: str = "") -> None:
        super().__init__(why)
        self.lasting = lasting
        self.hint = hint


class MismatchError(Exception):
    """The registry sent something else than what was asked of it."""


def copy(ref: str, target: Path, bounds: Bounds) -> None:
    """Put manifest and blobs of host/name@sha256:… into the new folder `target`, unchanged.

    Of host/name:tag too, and of an index the image for boxes: what was had, the manifest says.
    """
    if shutil.which("skopeo") is None:
        raise UnavailableError(
            "skopeo is not installed", lasting=True, hint="apt-get install skopeo"
        )
    target.mkdir()
    with _running(_command(ref, target, bounds), target.with_name("said")) as process:
        status = _watch(process, target, bounds)
    said = target.with_name("said").read_text(errors="replace").strip()[-SAID_BYTES:]
    if status == 0:
        return
    # Only how it is told depends on these words: whatever arrives is hashed by whoever uses it.
    if MISMATCH.search(said):
        raise MismatchError(said)
    raise UnavailableError(said or f"skopeo ended with {status}")


def is_loopback(ref: str) -> bool:
    host = ref.partition("/")[0].partition(":")[0]
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _command(ref: str, target: Path, bounds: Bounds) -> list[str]:
    seconds = f"{max(1, int(bounds.wall_seconds))}s"
    options = ["--preserve-digests", *(["--src-tls-verify=false"] if is_loopback(ref) else [])]
    return [
        *(sys.executable, "-Ic", LEASHED, str(os.getpid())),
        *("skopeo", "--command-timeout", seconds),
        *("--override-os", "linux", "--override-arch", ARCH, "copy", *options),
        *(f"docker://{ref}", f"dir:{target}"),
    ]


@contextlib.contextmanager
def _running(command: list[str], said: Path) -> Iterator[subprocess.Popen[bytes]]:
    with said.open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _watch(process: subprocess.Popen[bytes], target: Path, bounds: Bounds) -> int:
    """How it ended. It is given up when it stalls, takes too long or brings too much."""
    began = moved = time.monotonic()
    had = 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_SECONDS)
        size, now = _size(target), time.monotonic()
        if size != had:
            had, moved = size, now
        if size > bounds.bytes:
            raise UnavailableError(f"it is larger than {bounds.bytes} bytes", lasting=True)
        if now - moved > bounds.stall_seconds:
            raise UnavailableError(f"the registry sent nothing for {bounds.stall_seconds:g} s")
        if now - began > bounds.wall_seconds:
            raise UnavailableError(f"it took longer than {bounds.wall_seconds:g} s")


def _size(folder: Path) -> int:
    total = 0
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # files are renamed while we look
            total += path.stat().st_size
    return total
