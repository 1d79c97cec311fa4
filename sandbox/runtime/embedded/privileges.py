"""What a process in a box may do, and how much it may have: given up once, before it serves."""

import os
import resource
import signal

from sandbox.runtime.embedded import kernel, seccomp

_CAPABILITIES = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7,
    "NET_BIND_SERVICE": 10, "SYS_CHROOT": 18,
}  # fmt: skip
_KEEP = sum(1 << n for n in _CAPABILITIES.values())
_NICE = 13
"""RLIMIT_NICE, which Python does not name."""
_STACK_BYTES, _ANY, _MIB = 8 << 20, resource.RLIM_INFINITY, 1 << 20
_FILTER = seccomp.program()
"""Made once, in the zygote: every box has the same."""
FOR_PROGRAMS = [int(s) for s in signal.Signals if s not in (signal.SIGKILL, signal.SIGSTOP)]
"""Python, and the zygote, ignore some signals; what runs in the box should not inherit that."""


def set_limits(pid: int, open_files: int, file_mib: int, processes: int | None = None) -> None:
    """Not those of whoever started us: a verdict must not depend on their `ulimit`."""
    most = _ANY if processes is None else processes
    wanted = {
        resource.RLIMIT_NOFILE: (open_files, open_files),
        resource.RLIMIT_STACK: (_STACK_BYTES, _ANY),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_AS: (_ANY, _ANY),
        resource.RLIMIT_CPU: (_ANY, _ANY),
        resource.RLIMIT_DATA: (_ANY, _ANY),
        resource.RLIMIT_FSIZE: (file_mib * _MIB, file_mib * _MIB),
        resource.RLIMIT_NPROC: (most, most),
        # Real time and a better `nice` take the processor from the whole machine.
        resource.RLIMIT_RTPRIO: (0, 0),
        _NICE: (0, 0),
    }
    for limit, values in wanted.items():
        try:
            resource.prlimit(pid, limit, values)
        except (ValueError, PermissionError):  # in a container that may not raise it
            hard = resource.prlimit(pid, limit)[1]
            soft = hard if values[0] == _ANY else min(values[0], hard)
            resource.prlimit(pid, limit, (soft, hard))


def give_up(user_namespace: int | None) -> None:
    """Become the box's root, with no more rights than any program there."""
    enter(user_namespace)
    confine()


def enter(user_namespace: int | None) -> None:
    """Become the box's root, who has no rights outside of it where that has users of its own."""
    if user_namespace is not None:
        kernel.join_namespace(user_namespace, kernel.CLONE_NEWUSER)
        os.close(user_namespace)
    if kernel.may_set_groups():
        os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    kernel.no_new_privileges()
    kernel.bound_capabilities(_KEEP)
    kernel.die_with_parent()  # changing credentials resets it


def confine(more: int = 0) -> None:
    """Give up what is left of the rights, but for `more`: no program can be given that."""
    kernel.set_capabilities(_KEEP | more)
    kernel.hide_memory()
    kernel.die_with_parent()
    kernel.load_seccomp(_FILTER)


def as_a_program() -> None:
    """In a child of a box's first process that does not become a program."""
    kernel.set_capabilities(_KEEP)
