"""Which wheels a list of requirements means today, asked of pip without its configuration."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sandbox.errors import ImageFault
from sandbox.model.image import WheelPin
from sandbox.runtime.fetch import PYPI
from sandbox.runtime.image.layout import PYTHON

GLIBC_MINOR = 36
"""Bookworm's glibc is 2.36: newer wheels would not start."""
PIP_SECONDS = 300


def resolve_wheels(
    scratch: Path,
    requirements: Sequence[str],
    alone: Sequence[str],
    installed: Sequence[WheelPin],
) -> tuple[WheelPin, ...]:
    """`requirements` with their dependencies and `alone` without; never what is there already."""
    held = scratch / "constraints.txt"
    held.write_text("".join(f"{p.name}=={p.version}\n" for p in installed))
    found = [*map(wheel_pin, pip_report(scratch, requirements, ["--constraint", str(held)]))]
    found += map(wheel_pin, pip_report(scratch, alone, ["--no-deps"]))
    have = {p.name for p in installed}
    return tuple(sorted((p for p in found if p.name not in have), key=lambda p: p.name))


def pip_report(
    scratch: Path, requirements: Sequence[str], options: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """What pip would install, as it reports it (`install` of its installation report)."""
    if not requirements:
        return []
    report = scratch / "report.json"
    command = [
        *_pip(),
        *("--isolated", "install", "--dry-run", "--quiet", "--disable-pip-version-check"),
        *("--ignore-installed", "--only-binary=:all:", "--index-url", PYPI),
        *("--target", str(scratch / "never"), "--report", str(report)),
        *_platform(),
        *options,
        "--",
        *requirements,
    ]
    try:
        done = subprocess.run(
            command,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PIP_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ImageFault(f"pip: no end after {PIP_SECONDS} s") from None
    if done.returncode != 0:
        raise ImageFault(f"pip cannot resolve the wheels: {done.stderr.strip()[-800:]}")
    found: list[dict[str, Any]] = json.loads(report.read_text())["install"]
    return found


def _pip() -> list[str]:
    """Pip judges markers by the Python it runs on, so that has to be the image's version."""
    mine = sys.executable if "python{}.{}".format(*sys.version_info) == PYTHON else None
    for python in (mine, shutil.which(PYTHON), f"/usr/bin/{PYTHON}"):
        if python and Path(python).exists():
            command = [python, "-m", "pip"]
            if subprocess.run([*command, "-V"], capture_output=True, check=False).returncode == 0:
                return command
    raise ImageFault(
        f"relocking wheels needs {PYTHON} with pip",
        hint=f"{PYTHON} -m ensurepip, or apt-get install python3-pip on bookworm",
        retry=False,
    )


def _platform() -> list[str]:
    newest_first = [f"manylinux_2_{minor}_x86_64" for minor in range(GLIBC_MINOR, 4, -1)]
    tags = [*newest_first, "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]
    version = PYTHON.removeprefix("python")
    options = ["--python-version", version, "--implementation", "cp"]
    options += [f"--abi={abi}" for abi in (f"cp{version.replace('.', '')}", "abi3", "none")]
    return [*options, *(f"--platform={tag}" for tag in [*tags, "linux_x86_64"])]


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON", "UV_"))}
    return {**kept, "PIP_CONFIG_FILE": "/dev/null"}


def wheel_pin(item: dict[str, Any]) -> WheelPin:
    """Which wheel an item of pip's report is."""
    meta, source = item["metadata"], item["download_info"]
    return WheelPin(
        name=re.sub(r"[-_.]+", "-", meta["name"]).lower(),
        version=meta["version"],
        file=unquote(urlsplit(source["url"]).path.rpartition("/")[2]),
        sha256=source["archive_info"]["hashes"]["sha256"],
    )
