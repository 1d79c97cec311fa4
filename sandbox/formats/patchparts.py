"""A patch in two: what it changes in the working directory, and what outside of it. Pure."""

from itertools import pairwise

from sandbox.formats.patch import parse
from sandbox.formats.patchlines import PatchError
from sandbox.model.rooted import is_rooted


def parts(patch: bytes) -> tuple[bytes, bytes]:
    """Both are patches again, or empty. What cannot be read is of the working directory, as it is."""
    try:
        changes = parse(patch, max_bytes=len(patch), rooted=True)
    except PatchError:
        return patch, b""
    if not any(is_rooted(c.new) for c in changes):
        return patch, b""
    lines = [line + b"\n" for line in patch.split(b"\n")]
    ends = pairwise([*(c.line - 1 for c in changes), len(lines) - 1])
    told = [
        (is_rooted(c.new), b"".join(lines[a:b])) for c, (a, b) in zip(changes, ends, strict=True)
    ]
    inner, rooted = (b"".join(text for is_, text in told if is_ is want) for want in (False, True))
    return inner, rooted
