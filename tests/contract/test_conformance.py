"""Every shipped check, on every runtime here; and what two runtimes have to agree on."""

import pytest

from sandbox.audit.conformance import Bench, Check, Unseen, all_checks, lacks

CHECKS = [pytest.param(c, id=f"{c.group}: {c.name}") for c in all_checks()]


@pytest.mark.parametrize("check", CHECKS)
def test_it(check: Check, bench: Bench):
    if why := lacks(check, bench.runtime.capabilities()):
        pytest.skip(why)
    try:
        check.function(bench)
    except Unseen as e:
        pytest.skip(str(e))


def test_every_check_has_a_sentence_of_its_own_and_says_what_it_holds():
    names = [(c.group, c.name) for c in all_checks()]
    assert len(names) == len(set(names)) > 100
    assert [c.name for c in all_checks() if not c.promise.endswith((".", ")"))] == []
