"""Pinned repositories: had once, verified on every use, handed out without a past.

Every repository in the store is bare and holds exactly what is reachable from the pinned commit.
Git never runs on anything an agent has touched: patches are made here, from file contents.
"""
