"""Pinned worlds for coding agents, and verdicts that stay the same."""

from sandbox._version import __version__

__all__ = ["__version__"]
