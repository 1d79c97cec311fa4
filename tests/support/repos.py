"""Stored repositories for tests."""

from pathlib import Path

from sandbox.formats.repofile import FolderSource, RepoSource
from sandbox.model.task import RepoPin
from sandbox.runtime.repo.pins import Repos
from sandbox.runtime.store import Store

HEX40, HEX64 = "a" * 40, "b" * 64


def pinned(source: RepoSource, found: RepoPin) -> RepoSource:
    return RepoSource(
        commit=found.commit,
        tree=found.tree,
        pypi=source.pypi,
        git=source.git,
        folder=source.folder,
    )


def repos(store: Store, home: Path, source: RepoSource) -> tuple[Repos, RepoPin]:
    """The sources with the pin that they turn out to have."""
    found = Repos(store, home, {"it": source}).pin_of("it")
    return Repos(store, home, {"it": pinned(source, found)}), found


def folder_source() -> RepoSource:
    return RepoSource(commit="", tree="", folder=FolderSource(path="project"))
