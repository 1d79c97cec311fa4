"""Pinned repositories: the same commit everywhere, verified on every use."""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.errors import RepoFault, SpecError
from sandbox.formats.digest import Entry
from sandbox.formats.repofile import PypiSource, RepoSource
from sandbox.model.task import RepoPin
from sandbox.runtime.repo.pins import Repos, read_files, verify
from sandbox.runtime.store import Store
from tests.support.gits import git
from tests.support.repos import HEX40, folder_source, pinned, repos


def sdist(store: Store, build: Callable[[tarfile.TarFile], None]) -> Path:
    """An archive that has been fetched already: a blob of the store."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        build(tar)
    data = gzip.compress(out.getvalue(), mtime=0)
    path = store.blob(hashlib.sha256(data).hexdigest())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def add(tar: tarfile.TarFile, name: str, data: bytes = b"", **more: object) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))


def usual(tar: tarfile.TarFile) -> None:
    add(tar, "p-1", type=tarfile.DIRTYPE)
    add(tar, "p-1/src/a.py", b"a = 1\n", mtime=5, uid=1000)
    add(tar, "p-1/run", b"#!", mode=0o775)
    add(tar, "p-1/link", type=tarfile.SYMTYPE, linkname="run")


def pypi_source(blob: Path) -> RepoSource:
    source = PypiSource(project="p", version="1", file="p-1.tar.gz", sha256=blob.name)
    return RepoSource(commit="", tree="", pypi=source)


IMPORT = """
import sys
from pathlib import Path
from sandbox.formats.repofile import FolderSource, RepoSource
from sandbox.runtime.repo.pins import Repos
from sandbox.runtime.store import Store
source = RepoSource(commit="", tree="", folder=FolderSource(path="project"))
print(Repos(Store(Path(sys.argv[1])), Path(sys.argv[2]), {"it": source}).pin_of("it"))
"""


@pytest.fixture
def hostile_home(tmp_path: Path) -> Path:
    """A user whose git does everything that could change a commit."""
    user = tmp_path / "user"
    hooks = user / "templates" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-commit", "reference-transaction", "post-checkout"):
        (hooks / name).write_text("#!/bin/sh\ntouch $HOME/hooked\nexit 1\n")
        (hooks / name).chmod(0o755)
    (user / ".gitconfig").write_text(
        "[core]\n autocrlf = true\n eol = crlf\n fileMode = false\n quotePath = true\n"
        f" hooksPath = {hooks}\n attributesFile = {user}/attributes\n"
        f"[init]\n templateDir = {user}/templates\n defaultBranch = other\n"
        "[commit]\n gpgSign = true\n[diff]\n noprefix = true\n mnemonicPrefix = true\n"
        "[user]\n name = somebody\n[i18n]\n commitEncoding = latin1\n"
        "[extensions]\n objectFormat = sha256\n[fsck]\n missingSpaceBeforeDate = error\n"
    )
    (user / "attributes").write_text("* text eol=crlf filter=x\n")
    return user


@pytest.mark.parametrize(
    ("zone", "umask"), [("Asia/Tokyo", 0o077), ("America/New_York", 0o002)], ids=["jp", "us"]
)
def test_a_folder_gives_one_commit_for_every_user_zone_and_umask(
    store, home, hostile_home, zone, umask
):
    expected = Repos(store, home, {"it": folder_source()}).pin_of("it")
    said = subprocess.run(
        [sys.executable, "-c", IMPORT, hostile_home / "store", home],
        capture_output=True,
        check=True,
        text=True,
        umask=umask,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(hostile_home),
            "TZ": zone,
            "LANG": "de_DE.UTF-8",
            "GIT_AUTHOR_NAME": "me",
            "GIT_COMMITTER_DATE": "now",
            "XDG_CONFIG_HOME": str(hostile_home),
        },
    )
    assert said.stdout.strip() == str(expected)
    assert not (hostile_home / "hooked").exists()


def test_a_folder_s_files_are_imported_byte_for_byte(store: Store, home: Path):
    made, found = repos(store, home, folder_source())
    assert sorted(read_files(made.ensure(found))) == [
        Entry(".gitattributes", "file", b"* text=auto eol=crlf ident\n"),
        Entry(".gitignore", "file", b"*.py\n"),
        Entry("link", "link", b"src/a.py"),
        Entry('odd "name"\n\t', "file", b""),
        Entry("src/a.py", "file", b"a = 1\r\n"),
        Entry("src/run", "exec", b"#!/bin/sh\n"),
        Entry(os.fsdecode(b"\xff"), "file", bytes(range(256))),
    ]


def test_an_sdist_gives_one_commit_whatever_its_owners_and_times(store: Store, home: Path):
    def later(tar: tarfile.TarFile) -> None:
        add(tar, "p-1/run", b"#!", mode=0o755, mtime=99, uname="me")
        add(tar, "p-1/link", type=tarfile.SYMTYPE, linkname="run")
        add(tar, "p-1/src/a.py", b"a = 1\n")

    pins = {repos(store, home, pypi_source(sdist(store, b)))[1] for b in (usual, usual, later)}
    assert len(pins) == 1


def test_an_sdist_cannot_write_elsewhere_or_bring_a_git_folder(store: Store, home: Path):
    def hostile(tar: tarfile.TarFile) -> None:
        usual(tar)
        add(tar, "p-1/../../up", b"x")
        add(tar, "p-1/.git/hooks/post-checkout", b"x")
        add(tar, "p-1/src/.git/config", b"x")
        add(tar, "p-1/dev", type=tarfile.CHRTYPE)
        add(tar, "alone", b"x")

    plain, odd = (repos(store, home, pypi_source(sdist(store, b))) for b in (usual, hostile))
    assert odd[1] == plain[1]


def test_an_sdist_with_a_file_twice_has_the_last_one(store: Store, home: Path):
    def twice(tar: tarfile.TarFile) -> None:
        add(tar, "p-1/a", b"old")
        add(tar, "p-1/a", b"new")

    made, found = repos(store, home, pypi_source(sdist(store, twice)))
    assert read_files(made.ensure(found)) == [Entry("a", "file", b"new")]


def test_a_tampered_sdist_is_refused_by_name(store: Store, home: Path):
    blob = sdist(store, usual)
    made, found = repos(store, home, pypi_source(blob))
    blob.write_bytes(gzip.compress(b"other", mtime=0))
    with pytest.raises(RepoFault, match=r"refused: p-1\.tar\.gz is not what was pinned"):
        made.ensure(found)


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", gzip.compress(b"hello", mtime=0), gzip.compress(b"a" + bytes(600), mtime=0)],
)
def test_what_is_no_archive_is_refused_by_name(store: Store, home: Path, data: bytes):
    blob = store.blob(hashlib.sha256(data).hexdigest())
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(data)
    with pytest.raises(RepoFault, match="refused: `it` is no archive"):
        repos(store, home, pypi_source(blob))


def test_a_source_that_gives_another_commit_is_refused(store: Store, home: Path):
    _, found = repos(store, home, pypi_source(sdist(store, usual)))
    other = pypi_source(sdist(store, lambda tar: add(tar, "p-1/a", b"other")))
    changed = Repos(store, home, {"it": pinned(other, found)})
    with pytest.raises(RepoFault, match=r"refused: `it` gives commit .* not .* as pinned"):
        changed.ensure(found)
    assert not (store.root / "repos" / f"{found.commit}.git").exists()


def test_a_folder_of_one_s_own_that_has_changed_is_told_with_what_to_do(store: Store, home: Path):
    _, found = repos(store, home, folder_source())
    (home / "project" / "src" / "a.py").write_bytes(b"a = 2\n")
    changed = Repos(store, home, {"it": pinned(folder_source(), found)})
    with pytest.raises(SpecError, match="the files of `it` are not those that its pin names"):
        changed.ensure(found)


def test_a_pin_that_differs_from_the_lock_is_refused(store: Store, home: Path):
    made, found = repos(store, home, folder_source())
    with pytest.raises(RepoFault, match=r"`it` is pinned to .*lock\.yaml says"):
        made.ensure(RepoPin(name="it", commit=HEX40, tree=found.tree))
    with pytest.raises(RepoFault, match="`other` is not in") as caught:
        made.ensure(RepoPin(name="other", commit=HEX40, tree=found.tree))
    assert caught.value.hint == "known: it"


def test_a_tree_that_is_not_the_commit_s_is_refused(store: Store, home: Path):
    made, found = repos(store, home, folder_source())
    folder = made.ensure(found).folder
    with pytest.raises(RepoFault, match=r"has tree .* as pinned"):
        verify(folder, RepoPin(name="it", commit=found.commit, tree=HEX40))


def damages() -> dict[str, Callable[[Path], None]]:
    def content(folder: Path) -> None:
        for path in [*folder.rglob("*.pack"), *folder.glob("objects/??/*")]:
            path.chmod(0o600)
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 0xFF
            path.write_bytes(bytes(data))

    def gone(folder: Path) -> None:
        for path in [*folder.rglob("*.pack"), *folder.glob("objects/??/*")]:
            path.unlink()

    def one_gone(folder: Path) -> None:
        min(folder.glob("objects/??/*")).unlink()

    def swapped(folder: Path) -> None:
        """Another object's content under a name: only a hash tells."""
        loose = sorted(folder.glob("objects/??/*"))
        loose[0].chmod(0o600)
        shutil.copyfile(loose[1], loose[0])

    return {"content": content, "gone": gone, "one gone": one_gone, "swapped": swapped}


@pytest.mark.parametrize("damage", damages().values(), ids=damages())
def test_a_damaged_stored_repository_is_refused_by_name(store: Store, home: Path, damage):
    made, found = repos(store, home, folder_source())
    folder = made.ensure(found).folder
    if list(folder.rglob("*.pack")) and damage.__name__ in ("one_gone", "swapped"):
        loosen(folder)
    damage(folder)
    fresh = Repos(store, home, {"it": pinned(folder_source(), found)})
    with pytest.raises(RepoFault, match="refused: `it` is damaged") as caught:
        fresh.ensure(found)
    assert f"rm -r {folder}" in caught.value.hint
    assert not caught.value.retry


def loosen(folder: Path) -> None:
    """The same objects, each in a file of its own."""
    for pack in list(folder.rglob("*.pack")):
        data = pack.read_bytes()
        for path in pack.parent.glob(pack.stem + ".*"):
            path.unlink()
        git(folder, f"--git-dir={folder}", "unpack-objects", "-q", feed=data)
