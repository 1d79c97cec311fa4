"""The page that says what is held, and the attacks, are about the same things."""

from tests.contract.attacks import test_files, test_from_inside, test_hogs, test_neighbours
from tests.contract.attacks.table import PAGE, rows

TRIED = [
    *test_from_inside.ATTACKS,
    *test_hogs.ATTACKS,
    *test_neighbours.ATTACKS,
    *test_files.ATTACKS,
]


def test_every_attack_has_its_row_and_every_row_its_attack():
    assert sorted(TRIED) == sorted(rows())


def test_every_row_of_the_table_was_understood():
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "held |" in line]
    assert len(lines) == len(rows())


def test_no_attack_is_tried_twice():
    assert len(TRIED) == len(set(TRIED))
