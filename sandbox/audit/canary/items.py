"""Which check is which item of a test function, and which row it is for. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from sandbox.audit.canary.literals import Function
from sandbox.audit.canary.places import Group, is_error
from sandbox.model.verdict import CheckReport, Outcome, function_of

Report = Mapping[str, CheckReport]
_BY_ASSERTION = (
    "AssertionError",
    "assert ",
    "assert(",
    "Failed: ",
    "DID NOT RAISE",
    "DID NOT WARN",
)
_OF_THE_EDIT = ("NameError", "TypeError")
"""What comes of a name that is none, or no error's."""
_RAISED = re.compile(r"(?:\w+\.)*(\w+)(?::|$)")


def by_head(report: Iterable[str]) -> dict[str, list[str]]:
    """Function → its items, in the order in which they were reported."""
    made: dict[str, list[str]] = {}
    for told in report:
        made.setdefault(function_of(told), []).append(told)
    return made


def row_groups(function: Function, items: Sequence[str]) -> dict[str, tuple[Group, ...]]:
    """Item → what could be edited for it: the body, and a row of each `parametrize`."""
    count = 1
    for rows in function.shape:
        count *= rows
    if not function.shape:
        return dict.fromkeys(items, ((),))
    if count != len(items):
        # Something else multiplies them. Which row is whose is not known.
        return dict.fromkeys(items, ((), (0, 0)))
    made = {}
    for number, item in enumerate(items):
        left, groups = number, []
        for index, rows in reversed(list(enumerate(function.shape))):
            left, row = divmod(left, rows)
            groups.append((index, row))
        made[item] = ((), *sorted(groups))
    return made


def told_as(usual: Iterable[str], told: Iterable[str]) -> dict[str, str]:
    """Id of a check → its id where rows were edited, by its place among its function's items.

    Those of a function that has more or fewer items than usual are left out.
    """
    before, after = by_head(usual), by_head(told)
    pairs = ((items, after.get(name, [])) for name, items in before.items())
    return {
        a: b for old, new in pairs if len(old) == len(new) for a, b in zip(old, new, strict=True)
    }


def by_assertion(report: CheckReport | None, classes: Collection[str] = ()) -> bool:
    """Did it fail in the test itself, because an assertion did not hold?

    classes: of errors that were expected before an edit put others in their place. Such an error,
    or one that is a kind of it, goes through where it was caught, and that it comes is what the
    test is about.
    """
    if report is None or report.outcome is not Outcome.FAILED:
        return False
    if report.message.startswith(_BY_ASSERTION):
        return True
    raised = _RAISED.match(report.message)
    if raised is None or raised[1] in classes:
        return raised is not None
    return any(map(is_error, classes)) and is_error(raised[1]) and raised[1] not in _OF_THE_EDIT


def caught(
    told: Mapping[str, str], report: Report, classes: Collection[str] = ()
) -> dict[str, bool]:
    """Check → did what was reported in its place fail by an assertion? told: see told_as."""
    return {a: by_assertion(report.get(b), classes) for a, b in told.items()}
