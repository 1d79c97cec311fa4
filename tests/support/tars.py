"""The archives of the shipped checks, for tests."""

from sandbox.audit.conformance.tars import Entry, make_tar, raw_tar, read_tar, unpacked

__all__ = ["Entry", "make_tar", "raw_tar", "read_tar", "unpacked"]
