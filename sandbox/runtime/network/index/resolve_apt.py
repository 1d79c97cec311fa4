"""What apt would take from Debian's archive, with what is installed in the image."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sandbox.errors import ImageFault, NetworkFault
from sandbox.formats.indexfile import ROOTS
from sandbox.model.index import AptPin
from sandbox.runtime.fetch import fetch
from sandbox.runtime.image.apt import SUITE, Apt, fields, open_apt
from sandbox.runtime.image.layout import DPKG_STATUS
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store

OS_RELEASE = "usr/lib/os-release"


def apt_pins(
    store: Store, scratch: Path, packages: Sequence[str], image: Image | None
) -> tuple[str, list[AptPin]]:
    """The archive's date, as snapshots name it, and the packages."""
    suite = image_suite(image) if image else SUITE
    apt, snapshot = open_apt(scratch / "apt", suite)
    if image:
        _install(apt, image)
    pins = [_pin(stanza, suite) for stanza in apt.records(apt.choose(*packages))]
    for pin in pins:
        fetch(store, [pin.url], sha256=pin.sha256, name=pin.filename, fault=NetworkFault)
    return snapshot, pins


def _install(apt: Apt, image: Image) -> None:
    """Have apt see what is installed in the image. Raises ImageFault when it could add nothing."""
    status = image_file(image, DPKG_STATUS) or ""
    (apt.root / "status").write_text(status, encoding="utf-8", errors="surrogateescape")
    try:
        apt.run("apt-get", "check")
    except ImageFault as e:
        raise ImageFault(
            f"apt can install nothing in image {image.name}: what is there lacks what it needs: {e}",
            hint="an image for `apt-get install` has apt, and a recipe without `leave_out`",
            retry=False,
        ) from e


def image_suite(image: Image) -> str:
    """Of the Debian in an image. Raises ImageFault for what is no Debian."""
    said = dict(_settings(image_file(image, OS_RELEASE) or ""))
    if said.get("ID") != "debian" or "VERSION_CODENAME" not in said:
        name = said.get("PRETTY_NAME", "something unknown")
        raise ImageFault(
            f"image {image.name} is {name}: apt's packages can be frozen for Debian only",
            retry=False,
        )
    return said["VERSION_CODENAME"]


def image_file(image: Image, path: str) -> str | None:
    """A file of the image, from the topmost layer that has it."""
    for folder in image.lowers:
        if (found := folder / path).is_file() and not found.is_symlink():
            return found.read_text(encoding="utf-8", errors="surrogateescape")
    return None


def _settings(text: str) -> Iterator[tuple[str, str]]:
    for name, value in re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE):
        yield name, value.strip("\"'")


def _pin(stanza: str, suite: str) -> AptPin:
    said = fields(stanza)
    return AptPin(
        name=said["Package"],
        version=said["Version"],
        filename=said["Filename"],
        url=f"{ROOTS['apt']}{said['Filename']}",
        sha256=said["SHA256"],
        size=int(said["Size"]),
        arch=said["Architecture"],
        suite=suite,
        stanza=stanza,
    )
