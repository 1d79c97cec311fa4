from pathlib import PurePosixPath

import pytest

from sandbox.errors import SpecError
from sandbox.formats.dockerignore import ignored


@pytest.mark.parametrize(
    ("lines", "path", "out"),
    [
        (["*.md"], "a.md", True),
        (["*.md"], "docs/a.md", False),
        (["**/*.md"], "docs/a.md", True),
        (["**/*.md"], "a.md", True),
        (["docs"], "docs/deep/a.md", True),
        (["/docs/"], "docs/a.md", True),
        (["*", "!keep"], "keep/a", False),
        (["*", "!keep"], "other", True),
        (["*"], ".", False),
        (["*.txt", "!b.txt"], "b.txt", False),
        (["a?.[ch]"], "ab.c", True),
        (["# *"], "a", False),
        (["node_modules/**"], "node_modules/x/y", True),
        (["temp*/"], "temporary/a", True),
        (["a+b"], "aab", False),
    ],
)
def test_what_is_left_out(lines, path, out):
    assert (PurePosixPath(path) in ignored(lines)) == out


@pytest.mark.parametrize("line", ["[z-a]", "a[\\]"])
def test_what_is_no_pattern_is_told_with_its_line(line):
    with pytest.raises(SpecError, match=r"^\.dockerignore:2: .* is no pattern"):
        ignored(["*.md", line])
