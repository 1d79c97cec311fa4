"""Wrong versions of the reference solution: tests that accept one do not test what it changes."""
