"""What one runtime has seen, the other sees: snapshots go from one to the other, either way."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.audit.conformance.bench import expect_list, sh
from sandbox.audit.conformance.snapshots import CHANGE, compare, tree
from sandbox.audit.conformance.state import changed
from tests.contract.conftest import Benches

pytestmark = [pytest.mark.box, pytest.mark.docker]
PIPE = "/seeded/pipe"


@pytest.mark.parametrize(("one", "other"), [("embedded", "docker"), ("docker", "embedded")])
def test_a_snapshot_of_one_is_the_same_box_in_the_other(
    opened: Callable[[str], Benches], tmp_path: Path, one: str, other: str
):
    here, there = opened(one)(tmp_path), opened(other)(tmp_path)
    seeds = (here.seed,)
    with here.box(seeds=seeds) as box:
        sh(box, CHANGE)
        wanted, changes = tree(box), changed(box)
        taken = box.snapshot(tmp_path / "tar")
    with there.box(seeds=seeds, snapshot=taken) as box:
        compare(tree(box), wanted)
        found = changed(box)
    without = [c for c in changes if c.path != PIPE]
    expect_list([c for c in found if c.path != PIPE], without, "changes")


def test_the_same_done_in_both_is_the_same_change(opened: Callable[[str], Benches], tmp_path: Path):
    found = []
    for name in ("embedded", "docker"):
        bench = opened(name)(tmp_path)
        with bench.box(seeds=(bench.seed,)) as box:
            sh(box, CHANGE)
            found.append(box.changes())
    expect_list(found[1], found[0], "changes in docker, as in embedded")
