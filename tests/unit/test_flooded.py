"""A flood that swallows the first record is the submission's doing: void would be another try."""

from pathlib import Path

from sandbox.model.verdict import Ran
from tests.unit.test_verify import Verified, told


def test_a_first_record_that_was_lost_in_a_flood_is_no_fault(tmp_path: Path):
    """The supervisor hands on nothing of what it cannot bound."""
    evidence = Verified(tmp_path, told(b"", 137, how="flooded")).evidence()
    assert (evidence.ran, evidence.report) == (Ran.CRASHED, {})
    assert "told more than any suite" in evidence.detail
