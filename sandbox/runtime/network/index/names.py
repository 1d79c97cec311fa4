"""What names and versions mean to PyPI and npm."""

import re

_SEMVER = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
SemverKey = tuple[tuple[int, ...], bool, tuple[tuple[int, int, str], ...], str]


def pypi_name(name: str) -> str:
    """Normalised as PEP 503 says: one name for one project."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_release(version: str) -> bool:
    """Is it no prerelease?"""
    found = _SEMVER.fullmatch(version)
    return found is not None and found[4] is None


def semver_key(version: str) -> SemverKey:
    """To sort npm's versions by; what is no semantic version comes first."""
    found = _SEMVER.fullmatch(version)
    if found is None:
        return (), False, (), version
    parts = tuple(map(_part, found[4].split("."))) if found[4] else ()
    # A prerelease comes before its release.
    return tuple(map(int, found.groups()[:3])), found[4] is None, parts, version


def _part(part: str) -> tuple[int, int, str]:
    """Numbers come before words, and are compared as numbers."""
    return (0, int(part), "") if part.isdecimal() else (1, 0, part)
