"""Where on the host things lie is not told to an embedded box, whatever it is shown of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.embedded.mounts import COPIED_BYTES
from sandbox.runtime.freeze.build import programs
from sandbox.runtime.spec import BoxSpec, Mount, Stillness
from sandbox.runtime.store import Store
from tests.support.absent import absent
from tests.support.webs import replaying

pytestmark = pytest.mark.box
STILL = Stillness(at_ns=1_715_774_400 * 10**9)


@pytest.fixture
def runtime(store: Store) -> Iterator[EmbeddedRuntime]:
    made = EmbeddedRuntime(store)
    try:
        made.capabilities()
    except RuntimeFault as e:
        absent(e)
    yield made
    made.close()


def said(box: Box, *argv: str) -> str:
    done = box.exec(argv, seconds=60)
    assert done.exit_code == 0, done
    return done.stdout.decode()


def test_a_clock_and_a_network_do_not_tell_where_the_store_is(
    runtime: EmbeddedRuntime, spec: BoxSpec, store: Store, tmp_path: Path
):
    if why := runtime.capabilities().still:
        absent(why)
    wire = programs(store).program("wire")
    with (
        replaying(tmp_path / "cassette", wire=wire) as link,
        runtime.create(replace(link.joined(spec), still=STILL)) as box,
    ):
        link.start(box)
        seen = said(box, "cat", "/proc/self/mountinfo", "/proc/1/mountinfo")
    for path in (store.root, store.root.parent, tmp_path):
        assert str(path) not in seen
    roots = {line.split()[4]: line.split()[3] for line in seen.splitlines()}
    assert {"/.stillroom/still", "/.stillroom/wire", "/.stillroom/net"} <= roots.keys()
    assert not [root for root in roots.values() if root.count("/") > 2]


def test_a_file_is_shown_as_root_s_with_its_bytes_and_its_mode(
    runtime: EmbeddedRuntime, spec: BoxSpec, tmp_path: Path
):
    tool, note = tmp_path / "tool", tmp_path / "note"
    tool.write_text("#!/bin/sh\necho run\n")
    tool.chmod(0o755)
    note.write_bytes(bytes(range(256)))
    note.chmod(0o640)
    mounts = (Mount(source=tool, target="/x/tool"), Mount(source=note, target="/x/note"))
    with runtime.create(replace(spec, mounts=mounts)) as box:
        assert said(box, "/x/tool") == "run\n"
        assert box.exec(["cat", "/x/note"], seconds=60).stdout == bytes(range(256))
        shown = said(box, "stat", "-c", "%u:%g %a %s", "/x/tool", "/x/note")
        assert str(tmp_path) not in said(box, "cat", "/proc/self/mountinfo")
    assert shown.splitlines() == ["0:0 755 19", "0:0 640 256"]


def test_a_large_file_takes_no_memory_of_the_box(
    runtime: EmbeddedRuntime, spec: BoxSpec, tmp_path: Path
):
    large = tmp_path / "large"
    with large.open("wb") as f:
        f.truncate(COPIED_BYTES + 1)
    with runtime.create(replace(spec, mounts=(Mount(source=large, target="/large"),))) as box:
        kinds = dict(line.split()[1:3] for line in said(box, "cat", "/proc/mounts").splitlines())
        assert said(box, "stat", "-c", "%s", "/large") == f"{COPIED_BYTES + 1}\n"
    assert kinds["/large"] != "tmpfs"
