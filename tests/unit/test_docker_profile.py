"""The engine's profile says what the policy says; its rules are read here as the engine does."""

import errno
import json
from typing import Any

import pytest

from sandbox.runtime import policy
from sandbox.runtime.docker.profile import profile

PROFILE: dict[str, Any] = json.loads(profile())


def result(call: str, *arguments: int) -> int:
    """0 when the call is allowed, else the error it gets."""
    for rule in PROFILE["syscalls"]:
        if call in rule["names"] and all(holds(c, arguments) for c in rule.get("args", ())):
            return int(rule["errnoRet"])
    return 0


def holds(condition: dict[str, Any], arguments: tuple[int, ...]) -> bool:
    wanted, other = int(condition["value"]), int(condition["valueTwo"])
    value: int = (*arguments, 0, 0, 0)[int(condition["index"])] & 0xFFFF_FFFF_FFFF_FFFF
    match condition["op"]:
        case "SCMP_CMP_EQ":
            return value == wanted
        case "SCMP_CMP_GT":
            return value > wanted
        case "SCMP_CMP_MASKED_EQ":
            return value & wanted == other
        case unknown:
            raise AssertionError(unknown)


@pytest.mark.parametrize("call", policy.DENIED)
def test_what_the_policy_denies_is_refused(call: str):
    assert result(call) == errno.EPERM


def test_what_no_rule_names_is_allowed():
    assert PROFILE["defaultAction"] == "SCMP_ACT_ALLOW"
    assert result("read") == result("execve") == result("openat") == 0


def test_only_the_native_architecture_is_listed():
    assert all(not entry["subArchitectures"] for entry in PROFILE["archMap"])


def test_newer_calls_are_unknown_so_that_programs_fall_back():
    assert result("clone3") == result("open_tree_attr") == errno.ENOSYS


@pytest.mark.parametrize("flag", policy.NAMESPACE_FLAGS)
def test_new_namespaces_are_refused_to_clone(flag: int):
    assert result("clone", flag | 17) == errno.EPERM
    assert result("clone", 17) == result("clone", 0x003D_0F00) == 0


@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_sockets_of_the_usual_families_only(call: str):
    allowed = {family for family in range(-2, 70) if result(call, family) == 0}
    assert allowed == set(policy.FAMILIES)
    assert result(call, 40) == errno.EAFNOSUPPORT
    assert result(call, 1 << 32 | 40) == errno.EAFNOSUPPORT


def test_nothing_can_be_typed_into_somebody_s_terminal():
    assert result("ioctl", 0, 0x5412) == result("ioctl", 0, 1 << 32 | 0x5412) == errno.EPERM
    assert result("ioctl", 0, 0x5413) == 0


@pytest.mark.parametrize("call", policy.NOT_TO_INIT)
def test_calls_on_the_first_process_are_refused(call: str):
    assert result(call, 1) == result(call, 1 << 32 | 1) == errno.EPERM
    assert result(call, 0) == result(call, 4711) == 0


@pytest.mark.parametrize("call", policy.NOT_TO_INIT_SECOND)
def test_so_are_those_that_name_it_second(call: str):
    assert result(call, 0, 1) == errno.EPERM
    assert result(call, 1, 4711) == 0


def test_there_are_few_rules_as_each_costs_time_in_every_container():
    assert len(PROFILE["syscalls"]) < 32


def test_advice_on_what_is_in_memory_is_taken_and_not_followed():
    rules = [r for r in PROFILE["syscalls"] if {"fadvise64", "madvise"} & {*r["names"]}]
    assert all((r["action"], r["errnoRet"]) == ("SCMP_ACT_ERRNO", 0) for r in rules)
    advice = [c["valueTwo"] for r in rules for c in r.get("args", ())]
    assert (len(rules), advice) == (3, list(policy.PUT_OUT))
