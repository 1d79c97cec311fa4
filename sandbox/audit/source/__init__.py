"""The reference solution as files: what it changes, hunk by hunk, function by function."""
