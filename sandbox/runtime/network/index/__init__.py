"""The frozen package index: PyPI, npm and Debian as a lock has them, for a box without a network."""

from sandbox.runtime.network.index.clients import client_environment, client_mounts
from sandbox.runtime.network.index.files import ensure_files
from sandbox.runtime.network.index.frozen import FrozenIndex, frozen_index, open_index

__all__ = [
    "FrozenIndex",
    "client_environment",
    "client_mounts",
    "ensure_files",
    "frozen_index",
    "open_index",
]
