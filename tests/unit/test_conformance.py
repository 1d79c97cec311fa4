"""The conformance suite itself: what it says of runtimes that do not keep the contract."""

from pathlib import Path

import pytest

from sandbox.audit.conformance import Check, Outcome, all_checks, lacks, run
from sandbox.audit.conformance.bench import Bench, Unseen, eventually, expect, expect_list, refused
from sandbox.audit.conformance.registry import Group
from sandbox.errors import RuntimeFault, UserError
from sandbox.runtime.fake import NO_IMAGE, FakeRuntime
from sandbox.runtime.store import Store

BROKEN = "tests.support.broken"


def outcomes(name: str, store: Store, *wanted: str) -> dict[str, Outcome]:
    checks = [check for check in all_checks() if check.name in wanted]
    return {o.name: o for o in run(f"{BROKEN}:{name}", store, NO_IMAGE, checks)}


def test_what_a_runtime_breaks_is_named_and_the_rest_is_ok(store: Store):
    kept = "boxes have ids of their own", "destroying twice is harmless"
    found = outcomes(
        "Forgetful", store, *kept, "an empty folder can be got", "programs see what was put"
    )
    assert found["destroying twice is harmless"].result == "ok"
    assert found["boxes have ids of their own"].result == "not ok"
    assert found["boxes have ids of their own"].words == (
        "two boxes have two ids: forgetful, forgetful"
    )
    assert found["programs see what was put"].result == "not ok"
    assert "'ran\\n' was expected, '\\n' was found" in found["programs see what was put"].words


def test_an_error_of_the_runtime_s_is_its_failure_and_the_next_check_is_made(store: Store):
    first, second = "it is root on a host called box with umask 022", "destroying twice is harmless"
    found = outcomes("Forgetful", store, first, second)
    assert found[first].result == "not ok"
    assert found[first].words.startswith("ZeroDivisionError: a bug of this runtime's (broken.py:")
    assert found[second].result == "ok"


def test_what_a_runtime_cannot_do_here_is_skipped_with_the_reason(store: Store):
    name = "a frozen box stands still until it is thawed"
    found = outcomes("Fake", store, name)[name]
    assert (found.result, found.words) == ("skipped", "this runtime does not hold here: freeze")


def test_a_runtime_that_cannot_be_made_is_reported(store: Store):
    (found,) = outcomes("Unmakeable", store, "destroying twice is harmless").values()
    assert found.result == "not ok"
    assert "no engine for" in found.words


def test_a_runtime_that_cannot_be_closed_is_reported(store: Store):
    found = outcomes("Unclosable", store, "destroying twice is harmless")
    assert found["destroying twice is harmless"].result == "ok"
    assert "does not let go" in found["a runtime can be closed"].words


def test_a_runtime_that_is_not_there_is_the_user_s_error(store: Store):
    with pytest.raises(UserError, match="cannot load runtime"):
        outcomes("Missing", store, "destroying twice is harmless")


def test_nothing_is_left_in_the_store(store: Store):
    outcomes("Fake", store, "what was put is a change")
    assert [p for p in (store.root / "tmp").iterdir() if p.suffix != ".lease"] == []


def test_every_check_has_a_sentence_of_its_own_and_says_what_it_holds():
    names = [(c.group, c.name) for c in all_checks()]
    assert len(names) == len(set(names)) > 150
    assert [c.name for c in all_checks() if not c.promise.endswith(".")] == []


def test_every_need_can_be_asked_for():
    able = FakeRuntime().capabilities()
    needs = {need for c in all_checks() for need in c.needs}
    assert {"freeze", "snapshot", "memory", "disk: tmpfs"} <= needs
    for check in all_checks():
        assert bool(lacks(check, able)) == bool(
            set(check.needs) - {"snapshot", "disk: watch", "still"}
        )


def test_checks_are_in_the_order_in_which_they_are_written_down():
    group = Group("test")

    @group.check("freeze")
    def the_first_holds(bench: Bench) -> None:
        """It does."""

    @group.check()
    def the_second_too(bench: Bench) -> None:
        """It does."""

    wanted = Check(
        group="test",
        name="the first holds",
        promise="It does.",
        needs=("freeze",),
        function=the_first_holds,
    )
    assert group.checks[0] == wanted
    assert group.checks[1].name == "the second too"


def test_words_say_what_was_expected_and_what_was_found():
    with pytest.raises(AssertionError, match=r"^exit code: 0 was expected, 1 was found$"):
        expect(1, 0, "exit code")
    with pytest.raises(AssertionError, match=r"^names: missing are \['a'\]; too many are \['c'\]$"):
        expect_list(["b", "c"], ["a", "b"], "names")
    with pytest.raises(AssertionError, match="in this order"):
        expect_list(["b", "a"], ["a", "b"], "names")


def refuse(error: Exception) -> None:
    with refused("it", RuntimeFault):
        raise error


def test_refused_takes_one_kind_of_error_only():
    refuse(RuntimeFault("no"))
    with pytest.raises(AssertionError, match="RuntimeFault was expected, not OSError"):
        refuse(OSError("other"))
    with pytest.raises(AssertionError, match="nothing was raised"), refused("it", RuntimeFault):
        pass


def test_waiting_ends_when_its_time_is_up():
    assert not eventually(lambda: False, 0.05)
    assert eventually(lambda: True)


def test_what_cannot_be_seen_from_here_is_skipped(store: Store, tmp_path: Path):
    def blind(bench: Bench) -> None:
        raise Unseen("too far away")

    check = Check(group="test", name="blind", promise="Nothing.", needs=(), function=blind)
    (found,) = run(f"{BROKEN}:Fake", store, NO_IMAGE, [check])
    assert (found.result, found.words) == ("skipped", "too far away")
