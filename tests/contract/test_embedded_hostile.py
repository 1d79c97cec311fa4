"""Images, requests and programs that mean harm to the embedded runtime itself."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import RuntimeFault
from sandbox.model.task import Digest, Limits
from sandbox.runtime.base import Box
from sandbox.runtime.embedded import box as box_module
from sandbox.runtime.embedded.host import EmbeddedRuntime, tag
from sandbox.runtime.embedded.machine import find_groups
from sandbox.runtime.spec import BoxSpec, Image, ImageLayer
from sandbox.runtime.store import Store
from tests.support.absent import absent
from tests.support.waiting import eventually

pytestmark = pytest.mark.box
LIMITS = Limits(memory_mib=256, pids=32, cpus=2.0, disk_mib=32)


@pytest.fixture
def runtime(store: Store) -> Iterator[EmbeddedRuntime]:
    made = EmbeddedRuntime(store)
    try:
        made.capabilities()
    except RuntimeFault as e:
        absent(e)
    yield made
    made.close()


@pytest.fixture
def spec(image: Image) -> BoxSpec:
    return BoxSpec(image=image, limits=LIMITS, workdir="/root")


@pytest.fixture
def box(runtime: EmbeddedRuntime, spec: BoxSpec) -> Iterator[Box]:
    with runtime.create(spec) as made:
        yield made


def answers(box: Box) -> bool:
    return box.exec(["echo", "hi"], seconds=30).stdout == b"hi\n"


def python(box: Box, program: str) -> None:
    done = box.exec(["python3", "-c", program], seconds=30)
    assert done.exit_code == 0, done


def test_an_image_whose_links_lead_to_open_descriptors_changes_nothing_on_the_host(
    runtime, spec, tmp_path
):
    place = tmp_path / "host"
    place.mkdir()
    for number in range(3, 12):
        for depth in range(3, 12):
            folder = tmp_path / f"layer-{number}-{depth}"
            folder.mkdir()
            link = f"/proc/self/fd/{number}/{'../' * depth}{str(place).lstrip('/')}"
            (folder / "out").symlink_to(link)
            layer = ImageLayer(diff_id=Digest(folder.name), tar=folder, folder=folder)
            image = replace(spec.image, layers=(*spec.image.layers, layer))
            with suppress(RuntimeFault):
                runtime.create(replace(spec, image=image, workdir="/out/made")).destroy()
            assert not list(place.iterdir()), (number, depth)


def test_a_box_that_cannot_be_made_leaves_the_next_one_its_own_users(runtime, spec, tmp_path):
    """Nor is that so because one could be made before."""
    gone = ImageLayer(diff_id=Digest("gone"), tar=tmp_path, folder=tmp_path / "gone")
    image = replace(spec.image, layers=(*spec.image.layers, gone))
    with pytest.raises(RuntimeFault):
        runtime.create(replace(spec, image=image))
    with runtime.create(spec) as box:
        python(box, "assert open('/proc/self/uid_map').read().split()[1] != '0'")
    assert runtime.capabilities().user_namespace


ODD: dict[str, Callable[[Box], Any]] = {
    "a user by name": lambda b: b.open_pty(["true"], user="nobody"),
    "a user that is no number of the kernel's": lambda b: b.open_pty(["true"], user=f"{10**15}:0"),
    "no program": lambda b: b.exec([], seconds=30),
    "a program without a name": lambda b: b.open_pty([""]),
    "a folder with a NUL": lambda b: b.exec(["true"], seconds=30, cwd="/a\0b"),
    "half a character": lambda b: b.exec(["true"], seconds=30, cwd="/\ud800"),
    "a search path with a NUL": lambda b: b.exec(["true"], seconds=30, env={"PATH": "\0"}),
    "a terminal of a million lines": lambda b: b.open_pty(["true"], rows=10**6),
    "more than a message holds": lambda b: b.exec(["true", "x" * 300_000], seconds=30),
    "the same, trusted": lambda b: b.exec(["true", "x" * 300_000], seconds=30, trusted=True),
    "a path longer than a message": lambda b: b.get("/" + "x" * 300_000),
}


@pytest.mark.parametrize("what", ODD)
def test_a_request_that_makes_no_sense_is_refused_and_the_box_goes_on(box, what):
    with pytest.raises(RuntimeFault):
        ODD[what](box)
    assert answers(box)


def test_a_program_can_be_given_all_the_time_in_the_world(box):
    assert box.exec(["true"], seconds=float("inf")).exit_code == 0


def test_a_path_that_leads_in_a_circle_or_has_too_long_a_name_is_not_there(box):
    python(box, "import os; os.symlink('a', '/root/a'); os.symlink('b' * 300, '/root/b')")
    for path in ("/root/a/work", "/root/b/work"):
        with pytest.raises(FileNotFoundError):
            box.get(path)


def test_who_stops_all_that_is_started_keeps_nobody_waiting_for_ever(box, monkeypatch):
    monkeypatch.setattr(box_module, "ANSWER_SECONDS", 1.0)
    python(
        box,
        "import os, signal\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "while True:\n"
        "  for pid in range(os.getpid() + 1, os.getpid() + 40):\n"
        "    try: os.kill(pid, signal.SIGSTOP)\n"
        "    except OSError: pass\n",
    )

    def start() -> None:
        for _ in range(3):
            with suppress(RuntimeFault):
                box.open_pty(["true"]).close()

    starting = threading.Thread(target=start, daemon=True)
    starting.start()
    starting.join(20)
    assert not starting.is_alive()


def test_a_box_that_stands_still_can_be_thawed_whatever_was_asked_of_it_meanwhile(box):
    box.freeze()
    argument = "x" * 100_000
    asking = [
        threading.Thread(
            target=box.exec, args=(["true", argument, argument],), kwargs={"seconds": 30}
        )
        for _ in range(5)
    ]
    for one in asking:
        one.start()
    thawing = threading.Timer(0.5, box.thaw)
    thawing.start()
    for one in (thawing, *asking):
        one.join(20)
        assert not one.is_alive()


WRITE = "with open('/root/file', 'wb') as f: f.write(bytes({mib} << 20))"


def test_the_disk_limit_holds_again_after_a_reset(box):
    for _ in range(2):
        fill = WRITE.format(mib=40) + "\nimport time; time.sleep(60)"
        done = box.exec(["python3", "-c", fill], seconds=90)
        assert "disk limit" in done.limit
        box.reset()


def test_a_file_without_a_name_takes_its_room_as_long_as_it_is_open(box):
    program = WRITE.format(mib=8).replace("with ", "f = ").replace(" as f: ", "; ")
    program += (
        "; f.flush(); os.unlink('/root/file')\nif os.fork() == 0: time.sleep(600)\nos._exit(0)"
    )
    python(box, f"import os, time; {program}")
    assert box.stats().disk_bytes >= 8 << 20
    box.kill_all()
    assert box.stats().disk_bytes < 1 << 20


def test_a_file_with_two_names_takes_its_room_once(box):
    python(box, WRITE.format(mib=8) + "\nimport os; os.link('/root/file', '/root/other')")
    assert 8 << 20 <= box.stats().disk_bytes < 9 << 20


def test_what_is_moved_all_the_time_is_measured_all_the_same(box):
    python(
        box,
        "import os\n"
        "for i in range(8):\n"
        "  for top in 'ab': os.makedirs(f'/root/{i}/{top}')\n"
        "  os.mkdir(f'/root/{i}/a/x')\n"
        "  for j in range(100): open(f'/root/{i}/a/x/{j}', 'w').close()\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "while True:\n"
        "  for a, b in ('ab', 'ba'):\n"
        "    for i in range(8): os.rename(f'/root/{i}/{a}/x', f'/root/{i}/{b}/x')\n",
    )
    assert max(box.stats().disk_bytes for _ in range(20)) > 400 * 4096


def test_an_attribute_that_a_program_may_set_hides_nothing_from_the_changes(box):
    with suppress(AssertionError):  # a file system without such attributes
        python(box, "import os; os.setxattr('/etc', 'user.overlay.opaque', b'y')")
    python(box, "open('/etc/new', 'w').close()")
    assert next(c for c in box.changes() if c.path.startswith("/etc")).path == "/etc/new"


def test_a_full_box_refuses_programs_and_keeps_its_descriptors(box):
    python(
        box,
        "import os, time\n"
        "try:\n"
        "  while True:\n"
        "    if os.fork() == 0: time.sleep(600)\n"
        "except OSError: os._exit(0)\n",
    )

    def descriptors() -> int:
        return len(list(Path(f"/proc/{box._body._blank.pid}/fd").iterdir()))

    before = descriptors()
    for _ in range(20):
        with suppress(RuntimeFault):
            box.exec(["true"], seconds=30, user="1:1")
    assert descriptors() <= before + 1


def test_boxes_that_cannot_be_made_leave_no_control_groups(runtime, spec):
    runtime.create(spec).destroy()
    crew = runtime._crew
    kept = crew._run.rename(crew._run.with_suffix(".away"))
    try:
        for _ in range(5):
            with suppress(RuntimeFault):  # the first is staged already, perhaps
                runtime.create(spec).destroy()
    finally:
        kept.rename(crew._run)
    assert len(crew._groups.boxes()) <= 2  # those that are ordered for the next


FORKS = """
import os, sys, time
from pathlib import Path
sys.path[:0] = {path!r}
from sandbox.model.task import Limits
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.store import Store
from tests.support.tinyimage import tiny_image
from tests.support.absent import absent
store = Store(Path({root!r}))
runtime = EmbeddedRuntime(store)
box = runtime.create(BoxSpec(image=tiny_image(store), limits=Limits(memory_mib=128)))
child = os.fork()
if child == 0:
    os.closerange(0, 3)
    time.sleep(600)
print(child, box._body._blank.pid, runtime._crew._run, flush=True)
time.sleep(600)
"""


def test_a_process_that_the_user_forked_does_not_keep_the_boxes_alive(store, runtime):
    del runtime  # for its skip
    program = FORKS.format(path=sys.path, root=str(store.root))
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    with parent:
        child, first, run = parent.stdout.readline().split()
        parent.kill()
    try:
        eventually(lambda: not Path(run).exists() and not Path(f"/proc/{first}").exists())
        assert not Path(f"{run}.lease").exists()
    finally:
        os.kill(int(child), signal.SIGKILL)


def test_a_group_that_is_left_of_a_run_that_is_gone_is_reaped(runtime, box):
    groups = find_groups(tag(runtime._store))
    for path in groups.paths("0123456789abcdef.7"):
        Path(path).mkdir()
    assert runtime.reap() == ["box 0123456789abcdef.7"]
    assert not any(Path(path).exists() for path in groups.paths("0123456789abcdef.7"))
    assert answers(box)
