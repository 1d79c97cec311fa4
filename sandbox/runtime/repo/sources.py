"""How a repository is obtained: cloned, or imported from an sdist or a folder as one commit."""

import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from sandbox.errors import RepoFault
from sandbox.formats.digest import Entry, folder_entries
from sandbox.formats.repofile import RepoSource
from sandbox.runtime.fetch import fetch, pypi_url
from sandbox.runtime.repo.gitcmd import BRANCH, commit_stream, git_text, init, run_git
from sandbox.runtime.store import Store


def import_source(store: Store, home: Path, source: RepoSource, name: str, folder: Path) -> str:
    """A fresh bare repository from its source; returns its one head's commit."""
    init(folder)
    if source.git:
        return _clone(source.git.url, home, source.commit, folder)
    if source.pypi:
        sdist = source.pypi
        path = fetch(
            store,
            _late(lambda: pypi_url(sdist.project, sdist.file)),
            sha256=sdist.sha256,
            name=sdist.file,
            fault=RepoFault,
        )
        entries, message = _sdist_entries(path, name), f"Import {sdist.project} {sdist.version}"
    elif source.folder:
        entries = list(folder_entries(home / source.folder.path))
        message = f"Import {name}"
    else:
        raise RepoFault(f"`{name}` has no source", retry=False)
    stream = commit_stream(BRANCH, sorted(entries), message)
    run_git(folder, "fast-import", "--quiet", "--done", feed=stream)
    return git_text(folder, "rev-parse", f"refs/heads/{BRANCH}")


def _late(url: Callable[[], str]) -> Iterator[str]:
    """Ask the index only when the file is not in the store."""
    yield url()


def _clone(url: str, home: Path, commit: str, folder: Path) -> str:
    """Only what the commit reaches: no tag, no branch, no later object."""
    where = str(home / url) if "://" not in url and "@" not in url else url
    with_all = folder.with_name("all.git")
    init(with_all)
    try:
        run_git(with_all, "fetch", "--quiet", "--no-tags", where, commit)
    except RepoFault:  # not every server hands out a commit by its id
        run_git(with_all, "fetch", "--quiet", "--no-tags", where, "+refs/*:refs/stillroom/*")
    pack = run_git(
        with_all, "pack-objects", "--revs", "--stdout", "--quiet", feed=f"{commit}\n".encode()
    )
    run_git(folder, "index-pack", "--stdin", feed=pack)
    run_git(folder, "update-ref", f"refs/heads/{BRANCH}", commit)
    shutil.rmtree(with_all)
    return commit


def _sdist_entries(path: Path, name: str) -> list[Entry]:
    """The files of a source distribution, without its one top folder."""
    found: dict[str, Entry] = {}
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                inner = PurePosixPath(member.name).parts[1:]
                if not inner or ".." in inner or ".git" in inner:
                    continue
                where = "/".join(inner)
                if member.issym():
                    found[where] = Entry(where, "link", member.linkname.encode())
                elif member.isfile():
                    data = _content(tar, member)
                    kind = "exec" if member.mode & stat.S_IXUSR else "file"
                    found[where] = Entry(where, "exec" if kind == "exec" else "file", data)
    except (tarfile.TarError, OSError, EOFError) as e:
        raise RepoFault(f"refused: `{name}` is no archive: {e}", retry=False) from e
    return list(found.values())


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    f = tar.extractfile(member)
    return f.read() if f else b""
