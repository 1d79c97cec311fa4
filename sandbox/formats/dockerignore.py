"""`.dockerignore`: what of a folder no COPY sees."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbox.errors import SpecError
from sandbox.formats.yamlfile import read_text


@dataclass(frozen=True, slots=True)
class Ignored:
    rules: tuple[tuple[re.Pattern[str], bool], ...] = ()
    """Each with whether it leaves a path out, or takes it in again: the last that fits counts."""

    def __contains__(self, path: PurePosixPath) -> bool:
        """path: relative to the folder. What lies in a folder goes with it."""
        names = [str(p) for p in (path, *path.parents) if p.parts]
        out = False
        for pattern, leaves in self.rules:
            if any(pattern.fullmatch(name) for name in names):
                out = leaves
        return out


def load_ignored(folder: Path) -> Ignored:
    """Raises SpecError."""
    path = folder / ".dockerignore"
    return ignored(read_text(path).splitlines(), str(path)) if path.is_file() else Ignored()


def ignored(lines: Sequence[str], where: str = ".dockerignore") -> Ignored:
    """Raises SpecError."""
    rules = []
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        leaves = not line.startswith("!")
        plain = str(PurePosixPath("/", line.removeprefix("!").strip())).strip("/")
        try:
            rules.append((re.compile(_translated(plain)), leaves))
        except re.error:
            raise SpecError(f"`{line}` is no pattern", where=f"{where}:{number}") from None
    return Ignored(tuple(rules))


def _translated(pattern: str) -> str:
    """`*` stays within a name, `**` does not."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", pattern)
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        known.get(p) or (p if p.startswith("[") and p.endswith("]") else re.escape(p))
        for p in parts
    )
