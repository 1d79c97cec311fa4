"""What boxes share is in memory before they look."""

import mmap
import os
import resource
from pathlib import Path

from sandbox.runtime.warmth import read_in

PAGES = 64
MANY_PAGES = 4096


def a_file(path: Path, pages: int = PAGES) -> Path:
    path.write_bytes(b"\1" * pages * mmap.PAGESIZE)
    return path


def put_out(path: Path) -> None:
    with path.open("rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def missed(path: Path) -> int:
    """How many of its pages have to be read when they are looked at."""
    with path.open("rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as pages:
        pages.madvise(mmap.MADV_RANDOM)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        for at in range(0, len(pages), mmap.PAGESIZE):
            assert pages[at] == 1
        return resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before


def test_what_was_put_out_of_memory_is_there_again(tmp_path: Path):
    """Where files lie in memory anyway, there is nothing to miss in the first place."""
    (tmp_path / "below").mkdir()
    (tmp_path / "link").symlink_to("/proc/kmsg")
    os.mkfifo(tmp_path / "pipe")
    path = a_file(tmp_path / "below" / "shared")
    put_out(path)
    read_in([tmp_path, tmp_path / "not there"])
    assert missed(path) == 0


def test_so_is_the_end_of_a_large_file(tmp_path: Path):
    """A kernel follows such advice for some megabytes at a time, and leaves the rest out."""
    path = a_file(tmp_path / "shared", MANY_PAGES)
    put_out(path)
    read_in([tmp_path])
    assert missed(path) == 0


def test_it_is_not_asked_for_again_at_once(tmp_path: Path):
    path = a_file(tmp_path / "shared")
    put_out(path)
    lies_in_memory = missed(path) == 0
    now = [0.0]
    read_in([tmp_path], lambda: now[0])
    for seconds, there in ((1.0, lies_in_memory), (60.0, True)):
        put_out(path)
        now[0] = seconds
        read_in([tmp_path], lambda: now[0])
        assert (missed(path) == 0) == there
