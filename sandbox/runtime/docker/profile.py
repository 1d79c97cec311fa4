"""The policy on system calls as a profile for the engine.

A deny list like the policy, and for the engine that has a second reason: a filter is compiled for
every container and every exec, in time that grows with its rules, and an allow list has five
times as many. What a deny list leaves open, calls newer than it, is named below; what a profile
of names cannot say, "anything above 462", the missing capabilities hold back. Calls of another
architecture (i386, x32) end the process, as only the native one is listed.
"""

import errno
import hashlib
import json
from functools import cache
from typing import Any

from sandbox.runtime import policy
from sandbox.runtime.docker.engine import Engine
from sandbox.runtime.store import Store

_NEWER = (
    "mseal", "setxattrat", "getxattrat", "listxattrat", "removexattrat", "open_tree_attr",
    "file_getattr", "file_setattr", "listns", "rseq_slice_yield",
)  # fmt: skip
"""Refused as unknown; names that the engine's library does not know are left out by it."""
_NATIVE = ("SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64")
_NO_ERROR = 0
"""The call is not made, and who makes it is told that it was."""
_LOW = 0xFFFF_FFFF
"""The kernel looks at the lower half of these arguments only; so must we."""


@cache
def profile() -> str:
    """As the engine's API takes it."""
    return json.dumps(
        {
            "defaultAction": "SCMP_ACT_ALLOW",
            "archMap": [{"architecture": name, "subArchitectures": []} for name in _NATIVE],
            "syscalls": rules(),
        }
    )


def profile_for(engine: Engine, store: Store) -> str:
    """As this engine wants it: Podman takes the path of a file, and so must be on this machine."""
    if not engine.is_podman:
        return profile()
    content = profile().encode()
    path = store.root / "docker" / f"seccomp-{hashlib.sha256(content).hexdigest()[:16]}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with store.scratch() as folder:
            (folder / "profile").write_bytes(content)
            (folder / "profile").replace(path)
    return str(path)


def rules() -> list[dict[str, Any]]:
    found = [
        _refuse(sorted(policy.DENIED)),
        _refuse(["clone3", *_NEWER], errno.ENOSYS),
        _refuse(sorted(policy.NOT_TO_INIT), given=_equal(0, 1)),
        _refuse(sorted(policy.NOT_TO_INIT_SECOND), given=_equal(1, 1)),
        _refuse(["ioctl"], given=_equal(1, policy.TIOCSTI)),
        _refuse(sorted(policy.IGNORED), _NO_ERROR),
    ]
    found += [_refuse(["madvise"], _NO_ERROR, _equal(2, advice)) for advice in policy.PUT_OUT]
    found += [_refuse(["clone"], given=_masked(0, f, f)) for f in policy.NAMESPACE_FLAGS]
    sockets, highest = ["socket", "socketpair"], max(policy.FAMILIES)
    above = {"index": 0, "op": "SCMP_CMP_GT", "value": highest, "valueTwo": 0}
    found.append(_refuse(sockets, errno.EAFNOSUPPORT, above))
    for family in sorted(set(range(highest)) - set(policy.FAMILIES)):
        given = {"index": 0, "op": "SCMP_CMP_EQ", "value": family, "valueTwo": 0}
        found.append(_refuse(sockets, errno.EAFNOSUPPORT, given))
    return found


def _refuse(
    names: list[str], code: int = errno.EPERM, given: dict[str, Any] | None = None
) -> dict[str, Any]:
    rule: dict[str, Any] = {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": code}
    return {**rule, "args": [given]} if given else rule


def _equal(index: int, value: int) -> dict[str, Any]:
    return _masked(index, _LOW, value)


def _masked(index: int, mask: int, value: int) -> dict[str, Any]:
    return {"index": index, "op": "SCMP_CMP_MASKED_EQ", "value": mask, "valueTwo": value}
