"""What runs hidden checks that are programs, on this machine."""

from pathlib import Path

import pytest

from tests.support.runners import told, write

CHECKS = {
    "checks/right.sh": "#!/bin/sh\ntest -e here\n",
    "checks/wrong.sh": "#!/bin/sh\necho it is not so\nexit 3\n",
    "checks/killed.sh": "#!/bin/sh\nkill -9 $$\n",
    "checks/unknown": "#!/no/such/shell\n",
    "checks/notes.txt": "no check\n",
    "checks/more.sh": """#!/bin/sh
say() { echo "{\\"check\\": \\"$1\\", \\"outcome\\": \\"$2\\", \\"message\\": \\"$3\\"}" >&$STILLROOM_CHECKS; }
say one passed
say two failed "it is not so"
say three wonderful
echo '{"check": "four", "outcome": "passed"}'
""",
    "here": "",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "work", CHECKS)
    return tmp_path / "work"


def test_each_script_is_a_check_and_may_tell_of_more(folder: Path):
    seen = told("shell", folder, "checks")
    assert seen.checks == {
        "checks/right.sh": "passed",
        "checks/wrong.sh": "failed",
        "checks/killed.sh": "failed",
        "checks/unknown": "failed",
        "checks/more.sh": "passed",
        "checks/more.sh::one": "passed",
        "checks/more.sh::two": "failed",
        "checks/more.sh::three": "error",
    }
    assert seen.message("checks/wrong.sh").endswith("exit code 3; its last words: it is not so")
    assert seen.message("checks/more.sh::two") == "it is not so"
    assert "it is not so" in seen.log


def test_a_json_file_names_command_lines(folder: Path):
    write(folder, {"list.json": '{"it is there": "test -e here", "it is not": "test -e there"}'})
    seen = told("shell", folder, "list.json", "checks/right.sh")
    assert seen.checks == {
        "list.json::it is there": "passed",
        "list.json::it is not": "failed",
        "checks/right.sh": "passed",
    }


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1}'])
def test_a_file_that_is_no_list_of_checks_is_named(folder: Path, text: str):
    write(folder, {"list.json": text})
    seen = told("shell", folder, "list.json")
    assert (seen.checks, seen.uncollected) == ({}, ["the checks"])


def test_a_script_that_takes_too_long_has_failed_with_all_that_it_started(folder: Path):
    write(folder, {"slow/a": "#!/bin/sh\nsleep 1000 & sleep 1000\n", "slow/b": "#!/bin/sh\n"})
    seen = told("shell", folder, "slow", check_seconds=0.5)
    assert seen.checks == {"slow/a": "failed", "slow/b": "passed"}


def test_who_goes_on_when_the_script_has_ended_has_no_say(folder: Path):
    late = """#!/bin/sh
(trap '' HUP; sleep 1000; echo '{"check": "late", "outcome": "passed"}' >&3) &
"""
    write(folder, {"late/a": late})
    assert told("shell", folder, "late").checks == {"late/a": "passed"}


def test_what_a_script_leaves_behind_is_ended_even_in_a_session_of_its_own(folder: Path):
    text = "#!/bin/sh\nsetsid sh -c 'echo $$ >left; exec sleep 1000' &\nuntil test -s left; do :; done\n"
    write(folder, {"daemon/a": text})
    assert told("shell", folder, "daemon").checks == {"daemon/a": "passed"}
    assert not Path(f"/proc/{(folder / 'left').read_text().strip()}").exists()


def test_lines_that_are_no_records_make_the_script_an_error(folder: Path):
    write(folder, {"odd/a": "#!/bin/sh\necho nonsense >&3\n", "odd/b": "#!/bin/sh\n"})
    assert told("shell", folder, "odd").checks == {"odd/a": "error", "odd/b": "passed"}


def test_floods_are_bounded(folder: Path):
    flood = "#!/bin/sh\nhead -c 300000000 /dev/zero\nhead -c 1000000 /dev/zero | tr '\\0' 'x'\n"
    write(folder, {"flood/a": flood, "flood/b": "#!/bin/sh\nexec yes >&3\n"})
    seen = told("shell", folder, "flood")
    assert len(seen.log) < 1 << 19
    assert seen.checks["flood/a"] == "passed"
    assert seen.checks["flood/b"] == "failed"


def test_a_seed_gives_an_order_of_its_own(folder: Path):
    write(folder, {f"many/{n}": "#!/bin/sh\n" for n in range(9)})
    usual = told("shell", folder, "many").order
    drawn = told("shell", folder, "many", order=7).order
    assert drawn != usual == sorted(drawn)
