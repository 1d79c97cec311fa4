"""Every shipped check, on every runtime here."""

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
