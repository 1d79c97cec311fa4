"""What runs as a container's first process, and how it says which of the two it is."""

from functools import cache
from pathlib import Path

_SERVER = Path(__file__).with_name("server.py")
_WITHOUT = "exec env --ignore-signal=CHLD cat > /dev/null"
"""As process 1 it cannot be killed from inside; as it ignores SIGCHLD, the kernel reaps the
orphans it inherits. It ends with its input: with whoever made the box."""
PLAIN = b"-"
"""Its first byte when there is no python3 that could serve; a frame never begins with it."""
_BOOT = f"""import os, sys
if sys.version_info < (3, 8):
    os.write(1, {PLAIN!r})
    os.execvp("sh", ["sh", "-c", "{_WITHOUT}"])
text, size = b"", int(sys.argv[1])
while len(text) < size:
    text += os.read(0, size - len(text))
exec(text)"""


@cache
def program() -> bytes:
    """The server's text. It is the first that the container's first process reads."""
    return _SERVER.read_bytes()


def command() -> list[str]:
    """One `sh` looks for python3, so that nothing about the image has to be asked beforehand."""
    script = (
        "command -v python3 > /dev/null 2>&1 && "
        'exec python3 -I -S -B -c "$1" "$2"; '
        f"printf %s {PLAIN.decode()}; {_WITHOUT}"
    )
    return ["sh", "-c", script, "sh", _BOOT, str(len(program()))]
