"""Unit tests: no box, no network but loopback, nothing written outside tmp_path."""

from hypothesis import settings

# Shared machines have no even speed: a deadline would fail tests for the neighbour's work.
settings.register_profile("unit", max_examples=25, deadline=None)
settings.load_profile("unit")
