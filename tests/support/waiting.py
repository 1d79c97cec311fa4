"""Wait for what is bound to happen, no longer than it takes."""

from sandbox.audit.conformance.bench import eventually as eventually  # noqa: PLC0414 - for the tests
