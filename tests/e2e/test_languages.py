"""A task whose tests are node's, in a real box. `ci/bench languages` does the same with Go and Rust."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Stillroom
from tests.support.languages import NODE, write_task, wrong_with

pytestmark = [pytest.mark.box, pytest.mark.network]


@pytest.mark.timeout(300)
def test_node_tests_judge_what_is_right_and_no_print_makes_right_what_is_wrong(
    stillroom: Stillroom, tmp_path: Path
):
    write_task(stillroom, tmp_path, NODE)

    def verdict(agent: str, name: str) -> Any:
        done = stillroom("run", "node", "--agent", agent, "--json", "--out", name)
        return next(line["verdict"] for line in done.lines if "task" in line)

    assert wrong_with(NODE, "oracle", verdict("oracle", "right")) == ""
    assert wrong_with(NODE, "liar", verdict("script:node-liar.txt", "lies")) == ""
    assert "stopped after" in stillroom("explain", "lies", "node").out
