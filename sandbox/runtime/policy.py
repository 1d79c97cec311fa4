"""Which system calls a box may not make: one policy, for the BPF filter and for Docker's profile.

A deny list: a task's programs may be anything, an allow list of today's calls would break the
next libc, and what is newer than this list is refused as unknown anyway. What is refused gets
EPERM, unless said otherwise. Numbers: the kernel's syscall tables, (x86_64, aarch64).
"""

ARCHITECTURES = ("x86_64", "aarch64")
NEWEST_KNOWN = 462
"""Calls from this number on are refused as unknown, with ENOSYS, so that programs fall back."""

# fmt: off
DENIED: dict[str, tuple[int, int]] = {
    # -1 where an architecture lacks it
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
NOT_TO_INIT: dict[str, tuple[int, int]] = {
    "prlimit64": (302, 261), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
}
"""Their first argument is a process id. The box's first process has the user of all others, who
may set its limits without tracing it: out of descriptors, it would take the box down."""
NOT_TO_INIT_SECOND: dict[str, tuple[int, int]] = {
    "ioprio_set": (251, 30), "ptrace": (101, 117), "setpriority": (141, 140),
}
"""The same, of which the second argument is one: or a group, of which the first process has 1 too."""
IGNORED: dict[str, tuple[int, int]] = {"fadvise64": (221, 223)}
"""Answered with 0, and not made: advice that changes nothing but what of a file is in memory. Boxes of
an image have its files in common, and one could put out of memory what another then misses."""
ADVISE = (28, 233)
PUT_OUT = (20, 21)
"""Of madvise's third argument, what does the same: MADV_COLD and MADV_PAGEOUT."""
# fmt: on
CLONE, CLONE3 = (56, 220), (435, 435)
"""clone3's flags lie in memory, where a filter cannot look: ENOSYS, and programs use clone."""
SOCKET, SOCKETPAIR = (41, 198), (53, 199)
IOCTL = (16, 29)
NAMESPACE_FLAGS = (
    0x0002_0000,  # mount
    0x0200_0000,  # cgroup
    0x0400_0000,  # uts
    0x0800_0000,  # ipc
    0x1000_0000,  # user
    0x2000_0000,  # pid
    0x4000_0000,  # net
)
FAMILIES = (1, 2, 10, 16)
"""UNIX, INET, INET6, NETLINK. Not VSOCK, which no network namespace holds back: EAFNOSUPPORT."""
TIOCSTI = 0x5412
