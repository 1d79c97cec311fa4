"""The system call filter, run by an interpreter of its language."""

import errno
import struct

import pytest

from sandbox.runtime import policy
from sandbox.runtime.embedded.seccomp import program

ALLOW, KILL = 0x7FFF_0000, 0x8000_0000
ARCH = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
MACHINES = list(ARCH)
# From the kernel's tables: (x86_64, aarch64).
CALLS = {
    "read": (0, 63), "write": (1, 64), "openat": (257, 56), "execve": (59, 221), "mmap": (9, 222),
    "futex": (202, 98), "exit_group": (231, 94), "ptrace": (101, 117), "clone": (56, 220),
    "ioctl": (16, 29), "socket": (41, 198), "socketpair": (53, 199), "clone3": (435, 435),
    "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280), "keyctl": (250, 219), "add_key": (248, 217), "reboot": (169, 142),
    "init_module": (175, 105), "kexec_load": (246, 104), "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "move_mount": (429, 429), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "pivot_root": (155, 41), "swapon": (167, 224), "syslog": (103, 116),
}  # fmt: skip
DENIED = [
    "mount", "umount2", "unshare", "setns", "bpf", "keyctl", "add_key", "reboot", "init_module",
    "kexec_load", "open_by_handle_at", "perf_event_open", "userfaultfd", "io_uring_setup",
    "move_mount", "settimeofday", "clock_settime", "pivot_root", "swapon", "syslog",
]  # fmt: skip
ALLOWED = ["read", "write", "openat", "execve", "mmap", "futex", "exit_group"]


def number(call: str, machine: str) -> int:
    return CALLS[call][MACHINES.index(machine)]


def instructions(machine: str) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack("=HBBI", program(machine)))


def run(machine: str, call: int, *arguments: int, arch: int | None = None) -> int:
    """What the kernel would do with this call."""
    values = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<iIQ6Q", call, ARCH[machine] if arch is None else arch, 0, *values)
    code, at, accumulator = instructions(machine), 0, 0
    while True:
        kind, if_true, if_false, k = code[at]
        at += 1
        match kind:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, k)
            case 0x15:
                at += if_true if accumulator == k else if_false
            case 0x35:
                at += if_true if accumulator >= k else if_false
            case 0x45:
                at += if_true if accumulator & k else if_false
            case 0x06:
                return k
            case _:
                raise AssertionError(f"no such instruction: {kind:#x}")


def refused(result: int) -> int:
    assert result & 0xFFFF_0000 == 0x0005_0000, hex(result)
    return result & 0xFFFF


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("call", DENIED)
def test_what_has_no_business_in_a_box_is_refused(machine, call):
    assert refused(run(machine, number(call, machine))) == errno.EPERM


@pytest.mark.parametrize("both", policy.NOT_TO_INIT.values(), ids=policy.NOT_TO_INIT)
def test_the_limits_and_priority_of_the_first_process_are_out_of_reach(machine, both):
    call = both[MACHINES.index(machine)]
    assert refused(run(machine, call, 1)) == errno.EPERM
    assert refused(run(machine, call, 1 | 7 << 32)) == errno.EPERM  # the kernel takes 32 bits
    assert run(machine, call, 0) == run(machine, call, 4711) == ALLOW


@pytest.mark.parametrize("both", policy.NOT_TO_INIT_SECOND.values(), ids=policy.NOT_TO_INIT_SECOND)
def test_the_first_process_cannot_be_traced_nor_slowed_down(machine, both):
    call = both[MACHINES.index(machine)]
    assert refused(run(machine, call, 0, 1)) == errno.EPERM
    assert refused(run(machine, call, 16, 1 | 7 << 32)) == errno.EPERM
    assert run(machine, call, 1, 0) == run(machine, call, 0, 4711) == ALLOW


@pytest.mark.parametrize("both", policy.IGNORED.values(), ids=policy.IGNORED)
def test_advice_on_what_is_in_memory_is_taken_and_not_followed(machine, both):
    assert refused(run(machine, both[MACHINES.index(machine)], 3, 0, 0, 4)) == 0


def test_pages_are_not_put_out_of_memory_by_their_user(machine):
    call = policy.ADVISE[MACHINES.index(machine)]
    assert [refused(run(machine, call, 0, 4096, advice)) for advice in policy.PUT_OUT] == [0, 0]
    # Whatever else it advises: not to read ahead, to forget what is its own, huge pages.
    assert {run(machine, call, 0, 4096, advice) for advice in (0, 1, 4, 14, 25)} == {ALLOW}


@pytest.mark.parametrize("call", ALLOWED)
def test_what_programs_need_is_allowed(machine, call):
    assert run(machine, number(call, machine)) == ALLOW


@pytest.mark.parametrize("call", [462, 470, 500, 0x3FFF_FFFF, 0x4000_0000, 0x4000_0001, -1])
def test_what_is_newer_than_the_list_or_x32_is_unknown(machine, call):
    assert refused(run(machine, call)) == errno.ENOSYS


def test_calls_of_another_architecture_end_the_process(machine):
    for arch in (0x4000_0003, 0, *(a for m, a in ARCH.items() if m != machine)):
        assert run(machine, number("read", machine), arch=arch) == KILL


@pytest.mark.parametrize("flag", [0x2000_0000, 0x1000_0000, 0x0002_0000, 0x4000_0000, 0x0800_0000,
                                  0x0400_0000, 0x0200_0000])  # fmt: skip
def test_new_namespaces_are_refused_to_clone(machine, flag):
    assert refused(run(machine, number("clone", machine), flag | 17)) == errno.EPERM


def test_threads_and_children_are_allowed_to_clone(machine):
    for flags in (17, 0x003D_0F00, 0x0120_0011):
        assert run(machine, number("clone", machine), flags) == ALLOW


def test_clone3_is_unknown_so_that_programs_fall_back_to_clone(machine):
    assert refused(run(machine, 435)) == errno.ENOSYS


@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_sockets_of_the_usual_families_only(machine, call):
    for family in range(60):
        result = run(machine, number(call, machine), family)
        if family in (1, 2, 10, 16):
            assert result == ALLOW
        else:
            assert refused(result) == errno.EAFNOSUPPORT


def test_nothing_can_be_typed_into_somebody_s_terminal(machine):
    ioctl = number("ioctl", machine)
    assert refused(run(machine, ioctl, 0, 0x5412)) == errno.EPERM
    # The kernel looks at the low half only; so must we.
    assert refused(run(machine, ioctl, 0, 0x1_0000_5412)) == errno.EPERM
    assert run(machine, ioctl, 0, 0x5413) == ALLOW


def test_every_jump_lands_inside_the_program_and_every_path_ends(machine):
    code = instructions(machine)
    for at, (kind, if_true, if_false, _) in enumerate(code):
        if kind in (0x15, 0x35, 0x45):
            assert at + 1 + max(if_true, if_false) < len(code)
    assert code[-1][0] == 0x06
    assert len(code) < 4096
    for call in range(-2, 520):
        run(machine, call, 1, 2, 3)


def test_every_denied_call_is_known_to_the_list_s_bound():
    assert all(n < policy.NEWEST_KNOWN for pair in policy.DENIED.values() for n in pair)
    pairs = [*policy.DENIED.values(), *policy.NOT_TO_INIT.values()]
    pairs += policy.NOT_TO_INIT_SECOND.values()
    for column in (0, 1):
        used = [pair[column] for pair in pairs if pair[column] >= 0]
        assert len(used) == len(set(used))


def test_a_machine_without_a_filter_is_told():
    with pytest.raises(OSError, match="no system call filter for riscv64"):
        program("riscv64")
