"""What a box's own package managers have to be told, beside where the network is."""

from collections.abc import Mapping
from pathlib import Path

from sandbox.model.index import AptPin, IndexLock, NpmPin, PypiPin
from sandbox.runtime.spec import Mount

APT_CONFIG = "/etc/apt/apt.conf.d/99frozen-index"
APT_SOURCES = "/etc/apt/frozen-index.list"
_CONFIG = f"""\
// The image's own sources are signed with a key that this index has not, and are many.
Dir::Etc::sourcelist "{APT_SOURCES}";
Dir::Etc::sourceparts "/dev/null";
Acquire::Languages "none";
// A box's users may be but one, and its locks need no second one.
APT::Sandbox::User "root";
"""
_ENVIRONMENT: Mapping[type[object], Mapping[str, str]] = {
    # None of these asks for a package: they look for news, and would be refused.
    PypiPin: {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    NpmPin: {
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "npm_config_update_notifier": "false",
    },
    AptPin: {"DEBIAN_FRONTEND": "noninteractive"},
}


def client_environment(lock: IndexLock) -> dict[str, str]:
    """Variables for a box with this index."""
    found: dict[str, str] = {}
    for kind in sorted({type(p) for p in lock.pins}, key=str):
        found |= _ENVIRONMENT[kind]
    return found


def client_mounts(lock: IndexLock, folder: Path) -> tuple[Mount, ...]:
    """Files for a box with this index; they are written into `folder`, which has to stay."""
    suites = sorted({(p.suite, p.component) for p in lock.pins if isinstance(p, AptPin)})
    if not suites:
        return ()
    source = "deb [trusted=yes] http://deb.debian.org/debian"
    lines = "".join(f"{source} {suite} {component}\n" for suite, component in suites)
    files = {APT_CONFIG: _CONFIG, APT_SOURCES: lines}
    mounts = []
    for target, text in files.items():
        path = folder / Path(target).name
        path.write_text(text)
        path.chmod(0o644)
        mounts.append(Mount(source=path, target=target))
    return tuple(mounts)
