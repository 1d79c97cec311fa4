"""What Debian's packages do when they are installed, done once in the box that becomes the image.

Our images are unpacked packages: nobody ran their scripts. A task of somebody else's counts on what
those leave behind: cc, java and nc (links of update-alternatives), accounts, keys of sshd.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sandbox.adapters.harbor.report import Report
from sandbox.formats.digest import Entry
from sandbox.model.image import DebPin, ImageLock
from sandbox.runtime.base import Box
from sandbox.runtime.image.debfile import read_setup
from sandbox.runtime.store import Store
from sandbox.runtime.tarball import pack

_FOLDER = "/run/stillroom-setup"
_SECONDS = 600.0
_EACH_SECONDS = 120
_SHOWN = 3
_QUESTIONS = """\
# Nobody is asked anything, and everything is as it is unless said.
_ask() { RET=; return 0; }
for _name in beginblock capb clear endblock exist fget fset get go info input metaget previous_module \\
  progress purge register reset set settitle stop subst title unregister version x_loadtemplatefile; do
  eval "db_$_name() { _ask; }"
done
"""
"""In place of debconf, which our images leave out."""
_ALL = """\
cd {folder}
[ -e /usr/share/debconf ] || {{ mkdir /usr/share/debconf; cp confmodule /usr/share/debconf/; asks=1; }}
[ -e /usr/share/man ] || {{ man=1; for n in 1 2 3 4 5 6 7 8; do mkdir -p /usr/share/man/man$n; done; }}
printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d
set_up() {{
  DPKG_MAINTSCRIPT_PACKAGE=$1 DPKG_MAINTSCRIPT_NAME=postinst DPKG_MAINTSCRIPT_ARCH=amd64 \\
    timeout {seconds} ./"$1.postinst" configure '' > "$1.log" 2>&1 < /dev/null
}}
again=
for name in {names}; do set_up "$name" || again="$again $name"; done
for name in $again; do
  set_up "$name" || echo "$name: $(tail -n 1 "$name.log" | cut -c 1-200)"
done
rm -f /usr/sbin/policy-rc.d
[ -z "$asks" ] || rm -r /usr/share/debconf
[ -z "$man" ] || rm -r /usr/share/man
"""
"""One may need an account that another makes: those that fail have a second turn."""


@dataclass(frozen=True, slots=True)
class Setup:
    pin: DebPin
    script: bytes


def setups(store: Store, below: ImageLock, base: ImageLock) -> list[Setup]:
    """Of the packages that an image has beyond its base."""
    return list(_setups(store, below, base))


def _setups(store: Store, below: ImageLock, base: ImageLock) -> Iterator[Setup]:
    for layer in below.layers[len(base.layers) :]:
        for pin in layer.debs:
            script = read_setup(store.blob(pin.sha256), pin.name)
            if script:
                yield Setup(pin, script)


def set_up(box: Box, found: Sequence[Setup], report: Report, where: str) -> None:
    """Runs them. What fails is in the report; the package is there, as it is unpacked."""
    if not found:
        return
    box.exec(["mkdir", "-p", _FOLDER], seconds=60)
    entries = [Entry(f"{s.pin.name}.postinst", "exec", s.script) for s in found]
    box.put(pack([*entries, Entry("confmodule", "file", _QUESTIONS.encode())]), _FOLDER)
    names = " ".join(shlex.quote(s.pin.name) for s in found)
    script = _ALL.format(folder=_FOLDER, names=names, seconds=_EACH_SECONDS)
    done = box.exec(
        ["sh", "-c", script],
        seconds=_SECONDS,
        cwd="/",
        env={"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
    )
    box.exec(["rm", "-rf", _FOLDER], seconds=60, cwd="/")
    failed = done.stdout.decode("utf-8", "replace").splitlines()
    if done.timed_out:
        failed.append("its time was up")
    if failed:
        note = f"not all is set up as Debian does: {'; '.join(failed[:_SHOWN])}"
        report.changed("packages", note, where)
