"""The embedded runtime for somebody who is not root."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import sandbox
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.store import Store
from tests.contract.conftest import LIMITS
from tests.support.tinyimage import tiny_image

SOURCES = Path(sandbox.__file__).parent
PROGRAM = Path(__file__).parent.parent / "support" / "rootless.py"
NOBODY = 65534


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, Any]]:
    """What a program saw that ran as nobody, in a folder with all it needs."""
    if os.geteuid() != 0:
        pytest.skip("root alone can become somebody else")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(SOURCES, folder / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(PROGRAM, folder / "program.py")
        spec = BoxSpec(image=tiny_image(Store(folder)), limits=LIMITS, workdir="/root")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        done = subprocess.run(
            [python_of_everybody(), "-B", "program.py", folder],
            input=pickle.dumps(spec),
            capture_output=True,
            cwd=folder,
            env={},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            check=False,
        )
        said = done.stderr.decode()
        if "lets users make namespaces" in said:
            pytest.skip("this kernel lets no user make namespaces")
        assert done.returncode == 0, said
        yield json.loads(done.stdout)


def python_of_everybody() -> str:
    """One that is not in somebody's home."""
    here = Path(sys.executable).resolve()
    for python in (str(here), "/usr/bin/python3"):
        allowed = ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        with suppress(OSError):
            if not subprocess.run([python, *allowed], user=NOBODY, check=False).returncode:
                return python
    pytest.skip("no Python from 3.11 on that everybody may run")


pytestmark = pytest.mark.box


def test_root_in_the_box_is_the_user_outside(found: dict[str, Any]):
    assert (found["user"], found["rootless"]) == (65534, True)
    assert (found["inside"], found["trusted"]) == ("0\n", "0\n")


def test_root_in_the_box_cannot_mount(found: dict[str, Any]):
    assert found["refused"] != 0


def test_changes_are_seen_forked_and_reset(found: dict[str, Any]):
    assert found["wrote"] == 0
    assert found["changes"] == [
        "added /root/new", "added /srv", "added /srv/a", "added /srv/a/b", "deleted /usr/bin/wc",
    ]  # fmt: skip
    assert found["fork"] == "one\n"
    assert found["reset"] == []


def test_the_number_of_processes_is_limited_without_a_control_group(found: dict[str, Any]):
    assert "fork" in found["bomb"]


def test_a_clock_is_the_box_s_whichever_way_in(found: dict[str, Any]):
    *ways, at = found["clock"]
    for now, written, up in ways:
        assert 0 <= now - at < 600
        assert 0 <= written - at < 600
        assert up > 0


def test_a_limit_that_needs_root_is_refused_in_words(found: dict[str, Any]):
    assert "`loop`" in found["loop"]


def test_nothing_is_left(found: dict[str, Any]):
    assert found["left"] == []
