"""repos/lock.yaml: each mistake is one error at its line."""

from pathlib import Path

import pytest

from sandbox.errors import SpecError
from sandbox.formats.repofile import load_repo_lock
from tests.support.repos import HEX40, HEX64

LOCK = f"""\
schema: 1
repos:
  it:
    commit: "{HEX40}"
    tree: "{HEX40}"
    pypi:
      project: p
      version: "1"
      file: p-1.tar.gz
      sha256: {HEX64}
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        (f'commit: "{HEX40}"', 'commit: "abc"', 4, "`abc` is not a commit id"),
        (f'tree: "{HEX40}"', "tree: main", 5, "`main` is not a tree id"),
        (HEX64, "00ff", 10, "`00ff` is not a sha256"),
        ("    pypi:", "    folder: {path: x}\n    pypi:", 3, "exactly one of"),
        ("  it:", "  '../it':", 3, "is not a name"),
        ("  it:", "  ' ':", 3, "is not a name"),
        ("    pypi:", "    pipy:", 6, "unknown key `repos.it.pipy`"),
        ("      file:", "      fil:", 9, "unknown key `repos.it.pypi.fil`"),
        ('version: "1"', "version: 1.10", 8, "should be a string"),
        ("schema: 1", "schema: 2", 1, "`schema`"),
    ],
)
def test_a_malformed_lock_is_one_error_at_its_line(tmp_path: Path, old, new, line, says):
    path = tmp_path / "repos" / "lock.yaml"
    path.parent.mkdir()
    assert old in LOCK
    path.write_text(LOCK.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        load_repo_lock(tmp_path)
    assert caught.value.where == f"{path}:{line}"
    assert says in str(caught.value)


@pytest.mark.parametrize("url", ["ext::sh -c id", "fd::7", "--upload-pack=id"])
def test_an_address_that_runs_something_is_refused(tmp_path: Path, url: str):
    path = tmp_path / "repos" / "lock.yaml"
    path.parent.mkdir()
    text = LOCK[: LOCK.index("    pypi")] + f"    git:\n      url: '{url}'\n"
    path.write_text(text)
    with pytest.raises(SpecError, match="not an address we clone from") as caught:
        load_repo_lock(tmp_path)
    assert caught.value.where == f"{path}:7"
