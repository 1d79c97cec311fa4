"""What a container begins with, and how it says which of the two it is."""

from functools import cache
from pathlib import Path

from sandbox.runtime import family, foreground, procs
from sandbox.runtime.docker import children, server

_MODULES = (family, procs, foreground, children, server)
"""Each may import those before it, and what is built into Python."""
_WITHOUT = "exec env --ignore-signal=CHLD cat > /dev/null"
"""As process 1 it cannot be killed from inside; as it ignores SIGCHLD, the kernel reaps the
orphans it inherits. It ends with its input: with whoever made the box. Where a supervisor is
process 1, that guards it and reaps the orphans."""
PLAIN = b"-"
"""Its first byte when there is no python3 that could serve; a frame never begins with it."""
BOOT = f"""import os, sys
if sys.version_info < (3, 8):
    os.write(1, {PLAIN!r})
    os.execvp("sh", ["sh", "-c", "{_WITHOUT}"])
def take(size):
    text = b""
    while len(text) < size:
        text += os.read(0, size - len(text))
    return text
last = sys.argv.pop()
for name, size in zip(sys.argv[1::2], sys.argv[2::2]):
    sys.modules[name] = type(os)(name)
    exec(take(int(size)), sys.modules[name].__dict__)
exec(take(int(last)))"""
"""A module is found by its name alone: there are no packages around it."""


@cache
def _texts() -> list[bytes]:
    return [Path(module.__file__ or "").read_bytes() for module in _MODULES]


def program() -> bytes:
    """The modules' texts. They are the first that the container's first process reads."""
    return b"".join(_texts())


def sizes() -> list[str]:
    """What BOOT is told: name and length of each text, of the last its length."""
    told = [
        [module.__name__, str(len(text))] for module, text in zip(_MODULES, _texts(), strict=True)
    ]
    return [word for words in told for word in words if word != server.__name__]


def command(umask: int) -> list[str]:
    """One `sh` looks for python3, so that nothing about the image has to be asked beforehand.

    `umask`: of all that the server starts.
    """
    script = (
        f"umask {umask:04o}; command -v python3 > /dev/null 2>&1 && "
        'exec python3 -I -S -B -c "$@"; '
        f"printf %s {PLAIN.decode()}; {_WITHOUT}"
    )
    return ["sh", "-c", script, "sh", BOOT, *sizes()]
