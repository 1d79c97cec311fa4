"""All tests: whatever machine they run on, hypothesis looks for new examples, in CI as well."""

import signal

from hypothesis import settings

# Shared machines have no even speed: a deadline would fail tests for the neighbour's work.
settings.register_profile(
    "ours", settings.get_profile("default"), max_examples=25, deadline=None, print_blob=True
)
settings.load_profile("ours")


def pytest_configure() -> None:
    """Whoever starts the tests in the background has signals ignored, which programs inherit."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, handler)
