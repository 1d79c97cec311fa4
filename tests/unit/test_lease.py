"""Who lives and who has died, told by locks that the kernel drops."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sandbox.errors import ImageFault, RuntimeFault
from sandbox.runtime.lease import Lease, exclusive, orphans
from sandbox.runtime.store import Store, check_blob, default_store, remove_tree, sha256_file

HOLDER = """
import sys
from pathlib import Path
from sandbox.runtime.lease import Lease
lease = Lease(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[bytes]:
    """Another process that holds the lease until it is killed."""
    made = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert made.stdout
    assert made.stdout.readline() == b"held\n"
    return made


def killed(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_a_held_lease_cannot_be_taken(tmp_path: Path):
    with Lease(tmp_path / "new" / "a.lease") as lease:
        with pytest.raises(RuntimeFault, match="is held by another run") as caught:
            Lease(lease.path)
        assert not caught.value.retry
        assert list(orphans(tmp_path / "new")) == []


def test_a_released_lease_leaves_nothing_and_can_be_taken_again(tmp_path: Path):
    lease = Lease(tmp_path / "a.lease")
    lease.release()
    lease.release()
    assert list(tmp_path.iterdir()) == []
    Lease(tmp_path / "a.lease").release()


def test_the_lease_of_a_killed_process_is_an_orphan_and_not_before(tmp_path: Path):
    process = holder(tmp_path / "a.lease")
    try:
        assert list(orphans(tmp_path)) == []
    finally:
        killed(process)
    (orphan,) = orphans(tmp_path)
    with orphan:
        assert orphan.path == tmp_path / "a.lease"
        with pytest.raises(RuntimeFault):
            Lease(tmp_path / "a.lease")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path):
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        waiting.set()
        with exclusive(tmp_path / "locks" / "a.lock"):
            order.append("second")

    with exclusive(tmp_path / "locks" / "a.lock"):
        thread = threading.Thread(target=second)
        thread.start()
        waiting.wait()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_scratch_folder_goes_with_its_block(tmp_path: Path):
    store = Store(tmp_path)
    with store.scratch() as folder:
        (folder / "closed").mkdir()
        (folder / "closed" / "a").write_text("x")
        (folder / "closed").chmod(0)
        assert store.reap() == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_reap_takes_what_dead_owners_left_and_nothing_of_the_living(tmp_path: Path):
    store = Store(tmp_path)
    process = holder(tmp_path / "tmp" / "dead.lease")
    (tmp_path / "tmp" / "dead").mkdir()
    (tmp_path / "tmp" / "dead" / "file").write_text("x")
    with store.scratch() as living:
        assert store.reap() == []
        killed(process)
        assert store.reap() == [str(tmp_path / "tmp" / "dead")]
        assert living.exists()
        assert not (tmp_path / "tmp" / "dead").exists()
    assert store.reap() == []


def test_remove_tree_takes_links_and_not_what_they_point_to(tmp_path: Path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a").write_text("x")
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "alone").symlink_to(tmp_path / "kept")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    for name in ("gone", "alone", "dangling", "never"):
        remove_tree(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "a").exists()


def test_a_changed_blob_is_refused_by_name(tmp_path: Path):
    path = tmp_path / "b"
    path.write_bytes(b"one")
    good = sha256_file(path)
    check_blob(path, good, "a.deb", ImageFault)
    path.write_bytes(b"two")
    with pytest.raises(ImageFault, match=r"refused: a\.deb is not what was pinned") as caught:
        check_blob(path, good, "a.deb", ImageFault)
    assert not caught.value.retry
    assert str(path) in caught.value.hint


@pytest.mark.parametrize(
    ("env", "root"),
    [
        ({"STILLROOM_STORE": "/s", "XDG_CACHE_HOME": "/x"}, "/s"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/stillroom"),
        ({"HOME": "/h"}, "/h/.cache/stillroom"),
    ],
)
def test_where_the_store_is(env, root):
    assert default_store(env).root == Path(root)
