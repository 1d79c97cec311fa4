"""The policy on system calls as a BPF program: the kernel runs it before every call of a box."""

import errno
import platform
import struct

from sandbox.runtime import policy

_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARG0, _ARG1, _ARG2 = 0, 4, 16, 24, 32
_ALLOW, _ERRNO, _KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_AUDIT = dict(zip(policy.ARCHITECTURES, (0xC000_003E, 0xC000_00B7), strict=True))


def program(machine: str = "") -> bytes:
    """The filter for this machine's architecture. Raises OSError where there is none."""
    arch = machine or platform.machine()
    if arch not in _AUDIT:
        raise OSError(errno.ENOSYS, f"no system call filter for {arch}")
    column = policy.ARCHITECTURES.index(arch)
    code = [_op(_LOAD, _ARCH), _op(_JEQ, _AUDIT[arch], 1, 0), _op(_RETURN, _KILL), _op(_LOAD, _NR)]
    refuse, unknown = _op(_RETURN, _ERRNO | errno.EPERM), _op(_RETURN, _ERRNO | errno.ENOSYS)
    # x32 calls have bit 30 set: far above the newest known, so they are unknown too.
    code += [_op(_JGE, policy.NEWEST_KNOWN, 0, 1), unknown]
    code += [_op(_JEQ, policy.CLONE3[column], 0, 1), unknown]
    for numbers in policy.DENIED.values():
        if numbers[column] >= 0:
            code += [_op(_JEQ, numbers[column], 0, 1), refuse]
    ignored = _op(_RETURN, _ERRNO)
    for numbers in policy.IGNORED.values():
        code += [_op(_JEQ, numbers[column], 0, 1), ignored]
    code += [_op(_JEQ, policy.ADVISE[column], 0, 2 + 2 * len(policy.PUT_OUT)), _op(_LOAD, _ARG2)]
    for advice in policy.PUT_OUT:
        code += [_op(_JEQ, advice, 0, 1), ignored]
    code += [_op(_RETURN, _ALLOW)]
    for argument, calls in ((_ARG0, policy.NOT_TO_INIT), (_ARG1, policy.NOT_TO_INIT_SECOND)):
        for numbers in calls.values():
            code += [_op(_JEQ, numbers[column], 0, 4), _op(_LOAD, argument)]
            code += [_op(_JEQ, 1, 0, 1), refuse, _op(_RETURN, _ALLOW)]
    code += [_op(_JEQ, policy.CLONE[column], 0, 4), _op(_LOAD, _ARG0)]
    code += [_op(_JSET, sum(policy.NAMESPACE_FLAGS), 0, 1), refuse, _op(_RETURN, _ALLOW)]
    code += [_op(_JEQ, policy.IOCTL[column], 0, 4), _op(_LOAD, _ARG1)]
    code += [_op(_JEQ, policy.TIOCSTI, 0, 1), refuse, _op(_RETURN, _ALLOW)]
    families = policy.FAMILIES
    code += [_op(_JEQ, policy.SOCKET[column], 1, 0)]
    code += [_op(_JEQ, policy.SOCKETPAIR[column], 0, 2 + len(families)), _op(_LOAD, _ARG0)]
    code += [_op(_JEQ, family, len(families) - i, 0) for i, family in enumerate(families)]
    code += [_op(_RETURN, _ERRNO | errno.EAFNOSUPPORT), _op(_RETURN, _ALLOW)]
    return b"".join(code)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
