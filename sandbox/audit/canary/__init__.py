"""Canaries of a task: found when it is admitted, by trying."""
