"""The supervisor is built once for each store, with what there is."""

import stat
from pathlib import Path

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.freeze.build import NATIVE, OUTPUTS, programs
from sandbox.runtime.store import Store

COMPILER = """#!/bin/sh
# Stands in for one, and takes notes.
echo "$*" >> "$(dirname "$0")/calls"
while [ $# -gt 1 ]; do [ "$1" = -o ] && echo built > "$2"; shift; done
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A PATH with a C compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "cc").write_text(COMPILER)
    (folder / "cc").chmod(0o755)
    return folder


def calls(machine: Path) -> list[str]:
    return [c for c in (machine / "calls").read_text().splitlines() if "--version" not in c]


def test_what_was_built_is_not_built_again(store: Store, machine: Path) -> None:
    first = programs(store, path=str(machine))
    assert programs(store, path=str(machine)) == first
    assert len(calls(machine)) == len(OUTPUTS)


def test_what_is_built_bears_no_time_and_everybody_may_run_it(store: Store, machine: Path) -> None:
    made = programs(store, path=str(machine))
    for entry in (made.folder, made.still, made.library):
        assert (entry.stat().st_mtime, stat.S_IMODE(entry.stat().st_mode)) == (0, 0o755)


def test_another_compiler_is_another_result(store: Store, machine: Path) -> None:
    first = programs(store, path=str(machine))
    (machine / "cc").write_text(COMPILER + "echo another\n")
    assert programs(store, path=str(machine)).folder != first.folder


def test_every_source_is_in_one_of_the_programs() -> None:
    used = {name for output in OUTPUTS for name in output.sources}
    assert used == {file.name for file in NATIVE.glob("*.c")}


def test_without_a_compiler_and_a_network_it_says_what_would_help(
    store: Store, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "cc").write_text("#!/bin/sh\necho cannot find -lc >&2\nexit 1\n")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with pytest.raises(RuntimeFault, match="cannot find -lc") as caught:
        programs(store, path=str(machine))
    assert "apt-get install musl-tools" in caught.value.hint
    assert not any((store.root / "tmp").iterdir())
