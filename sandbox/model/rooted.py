"""Places of a box outside of the working directory: which of them a submission may be.

A name that begins with `/` is one from the root of the box, and is called rooted; any other is one
of the working directory. What a verdict is made with lies in the same box: its programs, their
libraries and settings, our own folders. No task may declare such a place, above or below it.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

_SETTINGS = (
    "alternatives", "apt", "doas*", "dpkg", "faketimerc", "group*", "gshadow*", "gss", "host.conf",
    "hostname", "hosts", "java*", "ld-*", "ld.so*", "localtime", "mtab", "nsswitch.conf", "pam*",
    "passwd*", "perl*", "pkcs11", "pki", "python*", "resolv.conf", "security", "shadow*", "ssl",
    "subgid*", "subuid*", "sudo*",
)  # fmt: skip
"""Of /etc: what programs load, who is who, and what a runtime puts there itself."""
_STATE = ("cache/apt", "lib/apt", "lib/dpkg", "lock", "run", "tmp")
"""Of /var."""
_TOPS = (
    ".dockerenv", ".stillroom", "bin", "boot", "dev", "gnu", "lib*", "nix", "proc", "root", "run",
    "sbin", "sys", "tmp", "usr", "verify",
)  # fmt: skip
NEVER = (
    *(f"/{name}" for name in _TOPS),
    *(f"/etc/{name}" for name in _SETTINGS),
    *(f"/var/{name}" for name in _STATE),
)
"""Patterns, part by part."""
_READ_AT_START = frozenset({
    ".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".cshrc",
    ".curlrc", ".gitconfig", ".inputrc", ".kshrc", ".login", ".mkshrc", ".netrc", ".npmrc",
    ".pdbrc", ".profile", ".pypirc", ".shrc", ".tcshrc", ".wgetrc", ".zlogin", ".zlogout",
    ".zprofile", ".zshenv", ".zshrc",
})  # fmt: skip
_READ_OF_ALL = tuple(
    f"/etc/{name}"
    for name in (
        "bash*", "csh*", "environment*", "fish", "gitconfig", "inputrc", "ksh*", "npmrc",
        "pip.conf", "profile*", "skel", "zsh*",
    )
)  # fmt: skip
"""Of every user's."""
_PLACES = frozenset({
    "BASH_ENV", "CARGO_HOME", "CLASSPATH", "CONDA_PREFIX", "ENV", "GEM_HOME", "GEM_PATH", "GOPATH",
    "GOROOT", "HOME", "JAVA_HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "NODE_PATH", "PATH",
    "PERL5LIB", "PYTHONHOME", "PYTHONPATH", "RUBYLIB", "RUSTUP_HOME", "VIRTUAL_ENV",
    "XDG_CONFIG_HOME",
})  # fmt: skip
"""Variables that name places from which programs are run, or load what they run."""


def is_rooted(path: str) -> bool:
    return path.startswith("/")


def never(path: str) -> bool:
    """Is it such a place, or above or below one? Capitals make no difference."""
    return any(_meet(path.casefold(), pattern) for pattern in NEVER)


def meet(one: str, other: str) -> bool:
    """Are they one place, or one of them above the other? Both are rooted."""
    return all(a == b for a, b in zip(_parts(one), _parts(other), strict=False))


def read_at_start(path: str) -> bool:
    """Is it a rooted file that shells and other tools read before they do what they are told?"""
    folded = path.casefold()
    if folded.rpartition("/")[2] in _READ_AT_START:
        return True
    return any(_meet(folded, pattern) for pattern in _READ_OF_ALL)


def places(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """A variable, and a place of programs that it names.

    Where their folder is one of a tree of its own, as /opt/tool/bin is, all of that.
    """
    for name in sorted(_PLACES & env.keys()):
        for place in env[name].split(":"):
            parts = _parts(place)
            if not is_rooted(place) or not parts:
                continue
            tree = parts[:-1] if name == "PATH" and len(parts) > 2 else parts
            yield name, "/" + "/".join(tree)


def _meet(path: str, pattern: str) -> bool:
    return all(fnmatchcase(a, b) for a, b in zip(_parts(path), _parts(pattern), strict=False))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
