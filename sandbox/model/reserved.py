"""Files that no submission brings along, whatever it declares: they would run before any test does.

A runner's configuration, what an interpreter loads when it starts, compiled code that stands for no
source, and what git reads. Such a file may be changed where the pinned tree has it, but for those
that tell a test runner or git what to do: they stay as pinned.
"""

from collections.abc import Container

from sandbox.model.rooted import is_rooted, read_at_start

FIXED = frozenset({
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini",
    "setup.cfg", ".gitattributes", ".gitmodules",
})  # fmt: skip
"""As pinned, or not there."""
STARTED = frozenset({"sitecustomize.py", "usercustomize.py"})
COMPILED = (".pth", "._pth", ".pyc", ".pyo", ".so", ".pyd")
"""These, and what ends so, are there only if they are pinned."""
CACHE = "__pycache__"


def held_back(path: str, pinned: Container[str], declared: Container[str] = ()) -> bool:
    """Is this a file that a submission has no say in? `pinned`: paths of the pinned tree.

    Names are compared as a file system would for which capitals are the same. What lies outside of
    the working directory is not as lightly changed: there only a file that is declared itself.
    """
    folded = path.casefold()
    if is_fixed(path):
        return True
    name = folded.rpartition("/")[2]
    shut = name in STARTED or name.endswith(COMPILED) or CACHE in folded.split("/")
    if is_rooted(path):
        return (shut or read_at_start(path)) and path not in declared
    return shut and path not in pinned


def is_fixed(path: str) -> bool:
    """Does nothing change it, whatever is declared?"""
    return path.casefold().rpartition("/")[2] in FIXED
