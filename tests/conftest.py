"""All tests: whatever machine they run on, hypothesis looks for new examples, in CI as well."""

from hypothesis import settings

# Shared machines have no even speed: a deadline would fail tests for the neighbour's work.
settings.register_profile(
    "ours", settings.get_profile("default"), max_examples=25, deadline=None, print_blob=True
)
settings.load_profile("ours")
