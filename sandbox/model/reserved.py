"""Files that no submission brings along, whatever it declares: they would run before any test does.

A runner's configuration, what an interpreter loads when it starts, compiled code that stands for no
source, and what git reads. Such a file may be changed where the pinned tree has it, but for those
that tell a test runner or git what to do: they stay as pinned.
"""

from collections.abc import Container

FIXED = frozenset({
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini",
    "setup.cfg", ".gitattributes", ".gitmodules",
})  # fmt: skip
"""As pinned, or not there."""
STARTED = frozenset({"sitecustomize.py", "usercustomize.py"})
COMPILED = (".pth", "._pth", ".pyc", ".pyo", ".so", ".pyd")
"""These, and what ends so, are there only if they are pinned."""
CACHE = "__pycache__"


def held_back(path: str, pinned: Container[str]) -> bool:
    """Is this a file that a submission has no say in? `pinned`: paths of the pinned tree.

    Names are compared as a file system would for which capitals are the same.
    """
    folded = path.casefold()
    name = folded.rpartition("/")[2]
    if name in FIXED:
        return True
    shut = name in STARTED or name.endswith(COMPILED) or CACHE in folded.split("/")
    return shut and path not in pinned
