"""What runs the hidden tests, on this machine: what it tells of itself, and in which order it goes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

RUNNER = Path(__file__).resolve().parents[2] / "verifiers" / "_runners" / "run_pytest.py"
BARE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
TESTS = "import pytest\n@pytest.mark.parametrize('n', range(9))\ndef test_it(n): ...\n"


def told(folder: Path, tests: str = TESTS, **plan: Any) -> list[dict[str, Any]]:
    """Its records."""
    (folder / "test_a.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    given = {
        "workdir": str(folder),
        "arguments": ["test_a.py"],
        "environment": {"LEVEL": "3"},
        "ini": str(folder / "pytest.ini"),
        "umask": 0o022,
        "order": None,
        "draw": False,
        "traceback": "short",
        "raw": False,
        **plan,
    }
    (folder / "plan.json").write_text(json.dumps(given))
    with (folder / "records").open("w+b") as records:
        subprocess.run(
            [
                sys.executable,
                "-P",
                "-s",
                str(RUNNER),
                str(folder / "plan.json"),
                str(records.fileno()),
            ],
            env={
                "PATH": os.environ["PATH"],
                "TZ": "UTC",
                "PYTHONHASHSEED": "0",
                "SEEN": "1",
                **BARE,
            },
            pass_fds=[records.fileno()],
            check=False,
        )
        records.seek(0)
        return [json.loads(line) for line in records]


def order(records: list[dict[str, Any]]) -> list[str]:
    return [r["check"] for r in records if "check" in r]


def test_it_tells_what_it_sees_before_the_first_check_and_after_the_last(tmp_path: Path):
    records = told(tmp_path)
    first, last = records[0]["probe"], records[-2]["probe"]
    assert records[-1]["end"] == 0
    assert {"python", "date", "date_bare"} == set(first["clock"])
    assert max(first["clock"].values()) - min(first["clock"].values()) < 5
    assert (first["settings"]["PYTHONHASHSEED"], first["settings"]["TZ"]) == ("0", "UTC")
    assert first["settings"]["user"] == f"{os.getuid()}:{os.getgid()}"
    assert "drawn" not in first["settings"]
    assert "SEEN" in first["variables"]
    assert "LEVEL" not in first["variables"]
    assert "LEVEL" in last["variables"]


def test_the_checks_have_the_umask_they_should(tmp_path: Path):
    assert told(tmp_path, umask=0o027)[0]["probe"]["settings"]["umask"] == "027"


def test_it_tells_what_it_draws_and_what_the_kernel_says_when_it_is_asked(tmp_path: Path):
    first = told(tmp_path, draw=True, raw=True)[0]["probe"]
    assert len(bytes.fromhex(first["settings"]["drawn"])) == 8
    assert abs(first["numbers"]["raw_clock"] - first["clock"]["python"]) < 5


def test_a_seed_gives_the_checks_an_order_of_its_own_and_always_the_same(tmp_path: Path):
    usual = order(told(tmp_path))
    drawn = order(told(tmp_path, order=7))
    assert usual == [f"test_a.py::test_it[{n}]" for n in range(9)]
    assert drawn != usual
    assert sorted(drawn) == usual
    assert order(told(tmp_path, order=7)) == drawn
    assert order(told(tmp_path, order=8)) != drawn
    assert order(told(tmp_path, order=-1)) == usual[::-1]


def test_where_many_are_to_fail_no_source_is_parsed_and_the_messages_are_the_same(tmp_path: Path):
    tests = "def test_one():\n    assert 1 == 2\ndef test_two():\n    raise KeyError(3)\n"
    unparsed = "import ast\ndef parse(*_, **__): raise SystemError\nast.parse = parse\n"
    shown = told(tmp_path, tests)
    bare = told(tmp_path, unparsed + tests, traceback="line")
    messages = [[r["message"] for r in told if "check" in r] for told in (shown, bare)]
    assert messages == [["assert 1 == 2", "KeyError: 3"]] * 2
