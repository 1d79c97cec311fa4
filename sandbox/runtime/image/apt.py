"""Which .debs a list of packages means today, asked of apt within a root of our own.

The machine's own sources, proxies, preferences and installed packages never come into it.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

from sandbox.errors import ImageFault
from sandbox.model.image import DebPin
from sandbox.runtime.image.build import DEBIAN
from sandbox.runtime.image.layout import ARCH

SUITE = "bookworm"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
INSTALL_LINE = re.compile(r"^Inst (\S+) (?:\[[^]]*\] )?\((\S+) ", re.MULTILINE)
APT_SECONDS = 300
CONFIG = f"""\
Dir "{{root}}";
Dir::State "state";
Dir::State::status "{{root}}/status";
Dir::Cache "cache";
Dir::Etc "etc";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "{{root}}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "/dev/null";
APT::Architecture "{ARCH}";
APT::Architectures {{{{ "{ARCH}"; }}}};
APT::Install-Recommends "0";
APT::Install-Suggests "0";
APT::Sandbox::User "root";
Acquire::Languages "none";
"""
Stanza = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Apt:
    """apt with its state under `root`, its lists up to date, and nothing installed."""

    root: Path

    def run(self, *arguments: str) -> str:
        environment = {
            "APT_CONFIG": str(self.root / "apt.conf"),
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C",
            **{k: v for k, v in os.environ.items() if k.lower() in ("http_proxy", "no_proxy")},
        }
        try:
            done = subprocess.run(
                arguments,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=APT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise ImageFault(f"{' '.join(arguments[:3])}: no end after {APT_SECONDS} s") from None
        except FileNotFoundError:
            raise ImageFault(
                f"relocking asks {arguments[0]}, which is not installed",
                hint="relock on a Debian or Ubuntu machine",
                retry=False,
            ) from None
        if done.returncode != 0:
            raise ImageFault(f"{' '.join(arguments[:3])}: {done.stderr.strip()[-800:]}")
        return done.stdout

    def stanzas(self, wanted: Iterable[str]) -> list[Stanza]:
        """The signed index's newest record of each, given as name or name=version."""
        return list(map(fields, self.records(wanted)))

    def records(self, wanted: Iterable[str]) -> list[str]:
        """The same, as the index has them."""
        names = sorted(wanted)
        if not names:
            return []
        text = self.run("apt-cache", "show", "--no-all-versions", *names)
        return [f"{s.strip()}\n" for s in text.split("\n\n") if s.strip()]

    def choose(self, *packages: str) -> set[str]:
        """What installing these brings in, as name=version."""
        said = self.run("apt-get", "-s", "--no-upgrade", "install", *packages)
        return {f"{name.split(':')[0]}={version}" for name, version in INSTALL_LINE.findall(said)}

    def pretend_installed(self, stanzas: Iterable[Stanza]) -> None:
        """So that neither these packages nor what only they need is chosen."""
        kept = ("Package", "Version", "Architecture", "Multi-Arch", "Provides")
        with (self.root / "status").open("a") as f:
            for stanza in stanzas:
                lines = [f"{key}: {stanza[key]}" for key in kept if key in stanza]
                lines += ["Status: hold ok installed", "Maintainer: none", "Description: none"]
                f.write("\n".join(lines) + "\n\n")


def open_apt(root: Path, suite: str = SUITE) -> tuple[Apt, str]:
    """A private apt under the empty folder `root`, and the archive's date, as snapshots name it."""
    for name in ("state/lists/partial", "cache/archives/partial", "etc"):
        (root / name).mkdir(parents=True)
    (root / "status").touch()
    (root / "apt.conf").write_text(CONFIG.format(root=root))
    (root / "sources.list").write_text(f"deb [signed-by={KEYRING}] {DEBIAN} {suite} main\n")
    apt = Apt(root)
    apt.run("apt-get", "-q", "--error-on=any", "update")
    release = next((root / "state" / "lists").glob("*_InRelease")).read_text()
    date = re.search(r"^Date: (.*)$", release, re.MULTILINE)
    if date is None:
        raise ImageFault("the archive's Release file has no date")
    return apt, parsedate_to_datetime(date[1]).strftime("%Y%m%dT%H%M%SZ")


def resolve_debs(
    apt: Apt, packages: Sequence[str], leave_out: Sequence[str], installed: Sequence[DebPin]
) -> tuple[DebPin, ...]:
    """These and what they depend on, and in a base the essential ones; nothing twice."""
    apt.pretend_installed(apt.stanzas(leave_out))
    apt.pretend_installed(_as_installed(apt, installed))
    essential = [] if installed else ["?essential"]
    wanted = apt.choose(*essential, *packages)
    return tuple(sorted(map(_pin, apt.stanzas(wanted)), key=lambda p: p.name))


def _as_installed(apt: Apt, pins: Sequence[DebPin]) -> Iterator[Stanza]:
    """Of a version the archive may no longer have; what it provides is taken from today's."""
    today = {s["Package"]: s for s in apt.stanzas(p.name for p in pins)}
    for pin in pins:
        mine = {"Package": pin.name, "Version": pin.version, "Architecture": pin.arch}
        yield {**today.get(pin.name, {}), **mine}


def fields(stanza: str) -> Stanza:
    """Of a record, those of one line."""
    lines = (x.partition(": ") for x in stanza.splitlines() if not x.startswith(" "))
    return {key: value for key, _, value in lines}


def _pin(stanza: Stanza) -> DebPin:
    return DebPin(
        name=stanza["Package"],
        version=stanza["Version"],
        arch=stanza["Architecture"],
        path=stanza["Filename"],
        size=int(stanza["Size"]),
        sha256=stanza["SHA256"],
    )
