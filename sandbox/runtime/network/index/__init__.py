"""The frozen package index: PyPI, npm and Debian as a lock has them, for a box without a network.

`frozen` is what answers, in a process that should start at once: nothing that is slow to load may
come with it. `files` fetches, `record` asks the real indexes, `clients` is what a box is told.
"""
