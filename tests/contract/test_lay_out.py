"""A submission's files in a real box: as it has them, byte for byte, and nothing besides."""

import os
from dataclasses import replace
from pathlib import Path

from sandbox.formats.digest import Entry
from sandbox.formats.patchwrite import make_patch
from sandbox.grading.apply import applied, lay_out
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.spec import BoxSpec, Seed
from sandbox.runtime.tarball import pack, read
from tests.support.homes import a_task

AT = 1_715_774_400
BEFORE = [
    Entry("src/a.py", "file", b"a = 1\n"),
    Entry("src/deep/er/gone.py", "file", b"x\n"),
    Entry("src/half/gone", "file", b"x\n"),
    Entry("src/half/stays", "file", b"x\n"),
    Entry("src/file-then-link", "file", b"x\n"),
    Entry("src/link-then-file", "link", b"a.py"),
    Entry("src/run", "exec", b"#!/bin/sh\n"),
    Entry("src/was-exec", "exec", b"x"),
    Entry("src/" + os.fsdecode(b"\xff gone"), "file", b"x"),
]
AFTER = [
    Entry("src/a.py", "file", b"a = 2\r\n"),
    Entry("src/half/stays", "file", b"x\n"),
    Entry("src/file-then-link", "link", b"half/stays"),
    Entry("src/link-then-file", "file", b"y"),
    Entry("src/run", "exec", b"#!/bin/bash\n"),
    Entry("src/was-exec", "file", b"x"),
    Entry("src/new/" + os.fsdecode(b"\xfe\n*"), "file", bytes(range(256))),
    Entry("src/-rf", "exec", b""),
]


def what_is_there(box: Box, folder: str) -> dict[str, Entry]:
    found = read(box.get(f"{folder}/src"), max_bytes=1 << 20, max_files=100)
    return {e.path: e for e in found}


def test_it_is_laid_out_as_it_is(runtime: Runtime, spec: BoxSpec, tmp_path: Path):
    task = a_task(tmp_path)
    places = [replace(e, path=f"{task.workdir.lstrip('/')}/{e.path}") for e in BEFORE]
    archive = pack(places)
    folder = tmp_path / "seed"
    for e in places:
        path = folder / e.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if e.kind == "link":
            path.symlink_to(os.fsdecode(e.data))
        else:
            path.write_bytes(e.data)
            path.chmod(0o755 if e.kind == "exec" else 0o644)
    tar = tmp_path / "seed.tar"
    tar.write_bytes(archive)
    made = applied(task, BEFORE, make_patch(BEFORE, AFTER))
    assert made.refused == ""
    seeded = replace(spec, seeds=(Seed(tar=tar, folder=folder),), workdir=task.workdir)
    with runtime.create(seeded) as box:
        lay_out(box, task, made, seconds=AT)
        assert what_is_there(box, task.workdir) == {e.path: e for e in AFTER}
        said = box.exec(["ls", "-1", f"{task.workdir}/src"], seconds=60).stdout
        assert b"deep" not in said
        assert b"half" in said
        times = box.exec(["stat", "-c", "%Y", f"{task.workdir}/src/a.py"], seconds=60).stdout
        assert int(times) == AT
