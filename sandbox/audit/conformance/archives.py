"""Archives that nobody should unpack, and what `put` does with them."""

import tarfile
import time
from collections.abc import Callable
from contextlib import suppress

from sandbox.audit.conformance.bench import Bench, exists, expect, hold, refused, said, sh
from sandbox.audit.conformance.files import TMP
from sandbox.audit.conformance.registry import Group
from sandbox.audit.conformance.tars import Entry, make_tar, raw_tar
from sandbox.errors import RuntimeFault

GROUP = Group("archives")
_SIZE = 8 << 30


@GROUP.check()
def a_broken_archive_is_a_fault(bench: Bench) -> None:
    """Noise, and an archive that was cut short."""
    whole = make_tar([Entry(name="file", content=bytes(100_000))])
    with bench.box() as box:
        with refused("noise", RuntimeFault):
            box.put(b"this is no archive" * 100, TMP)
        with refused("half an archive", RuntimeFault):
            box.put(whole[:50_000], TMP)
        expect(said(box, "echo", "fine"), "fine\n", "the box after it")


@GROUP.check()
def an_archive_that_leads_out_of_its_folder_is_a_fault(bench: Bench) -> None:
    """By `..`, by an absolute name."""
    with bench.box() as box:
        before = said(box, "cat", "/etc/passwd")
        for name in ("../etc/passwd", "/etc/passwd", "a/../../etc/passwd"):
            with refused(name, RuntimeFault):
                box.put(make_tar([Entry(name=name, content=b"x")]), TMP)
        expect(said(box, "cat", "/etc/passwd"), before, "the file outside")


@GROUP.check()
def an_archive_whose_own_link_leads_out_changes_nothing_there(bench: Bench) -> None:
    """First a link, then a file below it: refused, or the link gives way to a folder."""
    archive = make_tar([Entry(name="way", target="/etc"), Entry(name="way/passwd", content=b"x")])
    with bench.box() as box:
        before = said(box, "cat", "/etc/passwd")
        _try(lambda: box.put(archive, TMP))
        expect(said(box, "cat", "/etc/passwd"), before, "the file outside")


@GROUP.check()
def a_hard_link_to_what_is_outside_is_a_fault(bench: Bench) -> None:
    """It would open the file to be written to by the next member."""
    with bench.box() as box:
        before = said(box, "cat", "/etc/passwd")
        for target in ("../etc/passwd", "/etc/passwd"):
            link = tarfile.TarInfo("hard")
            link.type, link.linkname = tarfile.LNKTYPE, target
            with refused(f"a hard link to {target}", RuntimeFault):
                box.put(raw_tar((link, b"")), TMP)
        expect(said(box, "cat", "/etc/passwd"), before, "the file outside")


@GROUP.check()
def a_hard_link_within_an_archive_is_unpacked(bench: Bench) -> None:
    """It is a link like others."""
    first, link = tarfile.TarInfo("first"), tarfile.TarInfo("second")
    first.size = 4
    link.type, link.linkname = tarfile.LNKTYPE, "first"
    with bench.box() as box:
        box.put(raw_tar((first, b"one\n"), (link, b"")), TMP)
        expect(said(box, "cat", f"{TMP}/second"), "one\n", "content under the second name")


@GROUP.check()
def devices_and_pipes_in_an_archive_are_a_fault(bench: Bench) -> None:
    """`put`: what is no file, folder or link is refused."""
    kinds = {"a disk": tarfile.BLKTYPE, "a device": tarfile.CHRTYPE, "a pipe": tarfile.FIFOTYPE}
    with bench.box() as box:
        for what, kind in kinds.items():
            odd = tarfile.TarInfo("odd")
            odd.type, odd.devmajor, odd.devminor = kind, 1, 3
            with refused(what, RuntimeFault):
                box.put(raw_tar((odd, b"")), TMP)
            hold(not exists(box, f"{TMP}/odd"), f"{what} was not made")


@GROUP.check()
def a_sparse_bomb_is_refused_or_stays_small(bench: Bench) -> None:
    """A member of a few bytes that claims eight GiB of nothing."""
    bomb = tarfile.TarInfo("bomb")
    bomb.size = 0
    bomb.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.name": "bomb",
        "GNU.sparse.size": str(_SIZE),
        "GNU.sparse.numblocks": "1",
        "GNU.sparse.map": f"{_SIZE},0",
    }
    with bench.box() as box:
        began = time.monotonic()
        _try(lambda: box.put(raw_tar((bomb, b"")), TMP))
        hold(time.monotonic() - began < 30, "it takes no time")
        used = sh(box, "stat -c %b /tmp/bomb 2>/dev/null || echo 0")
        hold(int(used) < 1 << 16, f"it takes no space: {used.strip()} blocks of 512 bytes")


def _try(put: Callable[[], None]) -> None:
    """It may be refused; what counts is what it does not do."""
    with suppress(RuntimeFault):
        put()
