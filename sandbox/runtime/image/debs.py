"""A root file system out of .debs, without running a maintainer script.

What those scripts would have left behind and a shell user relies on is written here instead:
accounts, root's dotfiles, the links of update-alternatives, and dpkg's list of packages.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox.runtime.image.debfile import Deb, read_deb
from sandbox.runtime.image.entry import Entry, folder, symlink, with_parents
from sandbox.runtime.image.layout import DPKG_STATUS, MERGED, PYTHON

DROP = re.compile(
    r"usr/share/(doc|man|info|locale|lintian|bug|linda|doc-base|menu|pixmaps|applications"
    r"|bash-completion|zsh|fish|icons|help|i18n|zoneinfo/(right|posix)|gitweb|perl5/debconf)(/|$)"
    r"|usr/lib/git-core/(git-(daemon|imap-send)|scalar)$"
    r"|usr/bin/scalar$"
    # So that `pip install -e .` works: the image is the environment, nothing else lives in it.
    rf"|usr/lib/{re.escape(PYTHON)}/EXTERNALLY-MANAGED$"
)
GIT_HTTP = re.compile(r"usr/lib/git-core/git-(http-.*|remote-(ftps?|https?))$")
"""Git over HTTP: of no use in an image that leaves out the library for it."""
GIT_HTTP_LIBRARY = "usr/lib/x86_64-linux-gnu/libcurl-gnutls.so.4"
KEEP = re.compile(r"usr/share/doc/[^/]+/copyright$")
"""Licences ask for their text to go along."""
ALTERNATIVES = {
    "usr/bin/awk": ("mawk",),
    "usr/bin/which": ("which.debianutils",),
    "usr/bin/pager": ("less", "more"),
    "usr/bin/vim": ("vim.tiny",),
    "usr/bin/vi": ("vim.tiny",),
    "usr/bin/view": ("vim.tiny",),
    "usr/bin/ex": ("vim.tiny",),
    "usr/bin/editor": ("nano", "vim.tiny"),
    "usr/bin/w": ("w.procps",),
}
"""Name → programs that may stand for it, best first."""
FOLDERS = [
    *("dev", "etc/opt", "home", "media", "mnt", "opt", "proc", "run", "srv", "sys"),
    *(f"usr/local/{name}" for name in ("bin", "etc", "include", "lib", "sbin", "share", "src")),
    *("var/lib/dpkg/info", "var/mail", "var/opt"),
]
LINKS = {
    "etc/mtab": "../proc/self/mounts",
    "etc/dpkg/origins/default": "debian",
    "etc/localtime": "/usr/share/zoneinfo/Etc/UTC",
    "var/run": "/run",
    "var/lock": "/run/lock",
}
PAM = {
    "auth": "auth required pam_unix.so nullok\n",
    "account": "account required pam_unix.so\n",
    "password": "password required pam_unix.so\n",
    "session": "session required pam_unix.so\n",
    "session-noninteractive": "session required pam_unix.so\n",
}
"""What pam-auth-update would write; `su` needs it."""
DEFAULTS = {
    "etc/passwd": "usr/share/base-passwd/passwd.master",
    "etc/group": "usr/share/base-passwd/group.master",
    "etc/nsswitch.conf": "usr/share/base-files/nsswitch.conf",
    "etc/profile": "usr/share/base-files/profile",
    "root/.bashrc": "usr/share/base-files/dot.bashrc",
    "root/.profile": "usr/share/base-files/dot.profile",
}
"""What base-files and base-passwd copy into place when they are set up."""


def debs_entries(debs: Iterable[tuple[str, Path]], status_below: str = "") -> list[Entry]:
    """`status_below`: dpkg's list in the layers below, which this layer's list goes on from."""
    # Unpacking xz leaves Python's lock, so threads do help here.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        packages = list(pool.map(lambda d: read_deb(d[1], d[0]), debs))
    found = {e.path: e for p in packages for e in p.entries if _wanted(e.path)}
    if GIT_HTTP_LIBRARY not in found:
        found = {path: e for path, e in found.items() if not GIT_HTTP.match(path)}
    whole_system = "usr/share/base-files/profile" in found
    if whole_system:
        found |= {e.path: e for e in _system_files(found)}
    found |= {e.path: e for e in _alternatives(found)}
    found[DPKG_STATUS] = _file(DPKG_STATUS, _status(packages, status_below))
    return list(with_parents(found.values()).values())


def _wanted(path: str) -> bool:
    return KEEP.match(path) is not None or DROP.match(path) is None


def _system_files(found: Mapping[str, Entry]) -> Iterator[Entry]:
    yield from (symlink(name, f"usr/{name}") for name in MERGED)
    yield from (symlink(path, target) for path, target in LINKS.items())
    yield from (folder(path) for path in FOLDERS if path not in found)
    yield from (folder(path, 0o1777) for path in ("tmp", "var/tmp", "run/lock"))
    yield folder("root", 0o700)
    for path, source in DEFAULTS.items():
        if source in found:
            yield _file(path, found[source].data.decode())
    accounts = found[DEFAULTS["etc/passwd"]].data.decode().splitlines()
    names = [line.partition(":")[0] for line in accounts]
    yield _file("etc/shadow", "".join(f"{n}:*:19000:0:99999:7:::\n" for n in names), 0o640)
    yield from (_file(f"etc/pam.d/common-{name}", text) for name, text in PAM.items())
    yield _file("etc/shells", "/bin/sh\n/usr/bin/sh\n/bin/bash\n/usr/bin/bash\n")
    yield _file("etc/hostname", "box\n")
    yield _file("etc/hosts", "127.0.0.1 localhost box\n::1 localhost\n")
    yield _file("etc/resolv.conf", "")
    yield _file("etc/timezone", "Etc/UTC\n")


def _alternatives(found: Mapping[str, Entry]) -> Iterator[Entry]:
    for name, programs in ALTERNATIVES.items():
        present = [p for p in programs if f"usr/bin/{p}" in found]
        if present and name not in found:
            yield symlink(name, present[0])


def _status(packages: Iterable[Deb], below: str) -> str:
    stanzas = [s for s in below.split("\n\n") if s.strip()]
    for package in packages:
        first, rest = package.control.strip().split("\n", 1)
        stanzas.append(f"{first}\nStatus: install ok installed\n{rest}")
    by_name = {s.strip().split("\n", 1)[0]: s.strip() for s in stanzas}
    return "".join(f"{by_name[name]}\n\n" for name in sorted(by_name))


def _file(path: str, text: str, mode: int = 0o644) -> Entry:
    return Entry(path, "file", mode, data=text.encode())
