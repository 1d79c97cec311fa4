"""Which system calls a box may not make, as a BPF program.

A deny list: what a program has no business with in a box is refused with EPERM, what is newer
than this list with ENOSYS, so that programs fall back. Numbers: the kernel's syscall tables.
"""

import errno
import platform
import struct

_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24
_ALLOW, _ERRNO, _KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_AUDIT = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_NEWEST_KNOWN = 462
"""statmount, listmount and later are refused as unknown."""

# fmt: off
_DENIED: dict[str, tuple[int, int]] = {
    # name: (x86_64, aarch64); -1 where an architecture lacks it
    "acct": (163, 89), "add_key": (248, 217), "bpf": (321, 280), "clock_adjtime": (305, 266),
    "clock_settime": (227, 112), "delete_module": (176, 106), "finit_module": (313, 273),
    "fanotify_init": (300, 262), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fsopen": (430, 430), "fspick": (433, 433), "init_module": (175, 105),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "io_uring_setup": (425, 425),
    "ioperm": (173, -1), "iopl": (172, -1), "kcmp": (312, 272), "kexec_file_load": (320, 294),
    "kexec_load": (246, 104), "keyctl": (250, 219), "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238), "mount": (165, 40), "mount_setattr": (442, 442),
    "move_mount": (429, 429), "move_pages": (279, 239), "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42), "open_by_handle_at": (304, 265), "open_tree": (428, 428),
    "perf_event_open": (298, 241), "pidfd_getfd": (438, 438), "pivot_root": (155, 41),
    "process_madvise": (440, 440), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "reboot": (169, 142), "request_key": (249, 218), "setdomainname": (171, 162),
    "sethostname": (170, 161), "setns": (308, 268), "settimeofday": (164, 170),
    "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116), "umount2": (166, 39),
    "unshare": (272, 97), "userfaultfd": (323, 282), "vhangup": (153, 58), "vmsplice": (278, 75),
    "adjtimex": (159, 171), "create_module": (174, -1), "get_kernel_syms": (177, -1),
    "query_module": (178, -1), "uselib": (134, -1), "ustat": (136, -1), "sysfs": (139, -1),
    "_sysctl": (156, -1), "modify_ldt": (154, -1), "lsm_set_self_attr": (460, 460),
}
_NOT_TO_INIT = {
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
}
"""Their first argument is a process id. The box's first process has the user of all others, who
may set its limits without tracing it: out of descriptors, it would take the box down."""
# fmt: on
_CLONE, _CLONE3 = {"x86_64": 56, "aarch64": 220}, 435
_SOCKET, _SOCKETPAIR = {"x86_64": 41, "aarch64": 198}, {"x86_64": 53, "aarch64": 199}
_IOCTL = {"x86_64": 16, "aarch64": 29}
_NAMESPACE_FLAGS = 0x7E02_0000
_FAMILIES = (1, 2, 10, 16)
"""UNIX, INET, INET6, NETLINK. Not VSOCK, which no network namespace holds back."""
_TIOCSTI = 0x5412


def program(machine: str = "") -> bytes:
    """The filter for this machine's architecture. Raises OSError where there is none."""
    arch = machine or platform.machine()
    if arch not in _AUDIT:
        raise OSError(errno.ENOSYS, f"no system call filter for {arch}")
    code = [_op(_LOAD, _ARCH), _op(_JEQ, _AUDIT[arch], 1, 0), _op(_RETURN, _KILL), _op(_LOAD, _NR)]
    refuse, unknown = _op(_RETURN, _ERRNO | errno.EPERM), _op(_RETURN, _ERRNO | errno.ENOSYS)
    # x32 calls have bit 30 set: far above the newest known, so they are unknown too.
    code += [_op(_JGE, _NEWEST_KNOWN, 0, 1), unknown]
    # clone3's flags lie in memory, where a filter cannot look: programs fall back to clone.
    code += [_op(_JEQ, _CLONE3, 0, 1), unknown]
    column = list(_AUDIT).index(arch)
    for numbers in _DENIED.values():
        if numbers[column] >= 0:
            code += [_op(_JEQ, numbers[column], 0, 1), refuse]
    for both in _NOT_TO_INIT.values():
        code += [_op(_JEQ, both[column], 0, 4), _op(_LOAD, _ARG0)]
        code += [_op(_JEQ, 1, 0, 1), refuse, _op(_RETURN, _ALLOW)]
    code += [_op(_JEQ, _CLONE[arch], 0, 4), _op(_LOAD, _ARG0)]
    code += [_op(_JSET, _NAMESPACE_FLAGS, 0, 1), refuse, _op(_RETURN, _ALLOW)]
    code += [_op(_JEQ, _IOCTL[arch], 0, 4), _op(_LOAD, _ARG1)]
    code += [_op(_JEQ, _TIOCSTI, 0, 1), refuse, _op(_RETURN, _ALLOW)]
    code += [_op(_JEQ, _SOCKET[arch], 1, 0), _op(_JEQ, _SOCKETPAIR[arch], 0, 2 + len(_FAMILIES))]
    code += [_op(_LOAD, _ARG0)]
    code += [_op(_JEQ, f, len(_FAMILIES) - i, 0) for i, f in enumerate(_FAMILIES)]
    code += [_op(_RETURN, _ERRNO | errno.EAFNOSUPPORT), _op(_RETURN, _ALLOW)]
    return b"".join(code)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
