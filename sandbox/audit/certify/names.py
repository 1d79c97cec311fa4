"""What a test's name holds that it should not: time, chance, or a place. Pure."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

_UUID = re.compile(r"(?i)\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b")
_ADDRESS = re.compile(r"(?i)(?:\bat )?\b0x[0-9a-f]{6,16}\b")
_PLACE = re.compile(r"/tmp/|/var/tmp/|pytest-of-")  # noqa: S108 - looked for, not used


def suspicion(name: str, instants: Iterable[str]) -> str:
    """Why this name may not stay the same; empty if nothing in it looks so.

    instants: those at which boxes began, as in `clock.at`. A date is suspect only when it is one
    of these: many tests are about dates, and those stay.
    """
    if _UUID.search(name):
        return "its name holds a UUID"
    if _ADDRESS.search(name):
        return "its name holds an address of memory"
    if _PLACE.search(name):
        return "its name holds a temporary path"
    for instant in instants:
        if found := _dated(name, datetime.fromisoformat(instant)):
            return f"its name holds {found}, when the box's clock began at {instant}"
    return ""


def family(name: str) -> str:
    """The name of all tests that differ from this one in their parameters only.

    A name that chance had a part in never comes again; that of its family does.
    """
    head, bracket, _ = name.partition("[")
    return f"{head}[*]" if bracket else name


def _dated(name: str, began: datetime) -> str:
    # What is seen near midnight may be the day before or after, or another zone's.
    for day in (began, began + timedelta(days=1), began - timedelta(days=1)):
        for text in (f"{day:%Y-%m-%d}", f"{day:%Y%m%d}", f"{day:%d/%m/%Y}", f"{day:%m/%d/%Y}"):
            if text in name:
                return f"the date {text}"
    if re.search(rf"(?<!\d){began.year}(?!\d)", name):
        return f"the year {began.year}"
    seconds = str(int(began.timestamp()))[:6]
    if re.search(rf"(?<!\d){seconds}\d{{4}}(?!\d)", name):
        return "a time in seconds"
    return ""
