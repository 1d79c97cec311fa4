"""What this machine has for the embedded runtime, and what it lacks, in words."""

import os
import resource
import subprocess
import sys
from functools import cache
from pathlib import Path

import sandbox
from sandbox.runtime.embedded import cgroup, kernel

HINT = "run `stillroom doctor`, or use --runtime docker"
_FEWEST_FILES = 1024
"""A box may not be able to have more than we: the shell in it uses number 252."""
_WANTED_FILES = 65536
PACKAGE = str(Path(sandbox.__file__).resolve().parent.parent)
_TRY_NAMESPACE = f"""
import sys
sys.path.append({PACKAGE!r})
from sandbox.runtime.embedded import kernel
kernel.become_root_of_own()
"""


def missing() -> list[str]:
    """What this machine lacks for the embedded runtime, in words; empty when it can run."""
    lacks = []
    if sys.platform != "linux":
        lacks.append("the embedded runtime needs Linux")
    elif os.uname().machine not in kernel.MACHINES:
        lacks.append(f"the embedded runtime does not know {os.uname().machine}")
    elif (files := resource.getrlimit(resource.RLIMIT_NOFILE)[1]) < _FEWEST_FILES:
        lacks.append(
            f"the embedded runtime needs {_FEWEST_FILES} open files, not {files}: ulimit -n"
        )
    elif os.geteuid() != 0 and (why := _refused()):
        lacks.append(
            f"the embedded runtime needs root, or a kernel that lets users make namespaces: {why}"
        )
    elif os.geteuid() == 0 and cgroup.detect() is None:
        lacks.append("the embedded runtime needs the memory and pids cgroups")
    return lacks


def find_groups(parent: str) -> cgroup.Cgroups:
    """Without any folder for a user to whom no control group was handed."""
    found = cgroup.delegated(parent=parent) if os.geteuid() else cgroup.detect(parent=parent)
    return found or cgroup.Cgroups((), 1, parent)


def raise_own_limits() -> None:
    """Four descriptors for each box: as many as we may have, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, _WANTED_FILES) if hard != resource.RLIM_INFINITY else _WANTED_FILES
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@cache
def _refused() -> str:
    """Why a user namespace cannot be made; empty when it can. Tried in a process of its own."""
    command = [sys.executable, "-c", _TRY_NAMESPACE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""
