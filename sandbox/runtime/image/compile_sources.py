"""Runs under the image's own bare interpreter: sources to bytecode, in the order given.

argv: a list of NUL-ended (source here, NUL, source in the image), and a folder for the results,
named by position. Imports nothing that is not loaded anyway: what is alive in the interpreter
shows in the reference flags of marshal, so the same things must be alive each time.
"""

import marshal
import sys
from importlib._bootstrap_external import MAGIC_NUMBER


def main(listing: str, out: str) -> None:
    with open(listing, encoding="utf-8", errors="surrogateescape") as f:  # noqa: PTH123
        names = f.read().split("\0")
    for position in range(len(names) // 2):
        source, shown = names[2 * position], names[2 * position + 1]
        mtime, size, data = read(source)
        try:
            code = compile(data, shown, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, OverflowError):
            continue  # templates, and sources for another Python
        header = MAGIC_NUMBER + bytes(4) + word(mtime) + word(size)
        with open(f"{out}/{position}", "wb") as f:  # noqa: PTH123
            f.write(header + marshal.dumps(code))


def read(source: str) -> tuple[int, int, bytes]:
    status = sys.modules["posix"].stat(source)
    with open(source, "rb") as f:  # noqa: PTH123
        return int(status.st_mtime), status.st_size, f.read()


def word(number: int) -> bytes:
    return (number & 0xFFFFFFFF).to_bytes(4, "little")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
