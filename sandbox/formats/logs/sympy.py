"""sympy's own runner: `test_name ok` under the name of a file; names are not unique among files."""

from collections.abc import Iterator

from sandbox.formats.logs.sighting import Setting, Sighting, Status, aside, lines

_ENDS = {" E": Status.ERROR, " F": Status.FAILED, " ok": Status.PASSED}
_ASIDES = {
    " f": Status.XFAIL,
    " X": Status.XPASS,
    " s": Status.SKIPPED,
    " Skipped": Status.SKIPPED,
    " T": Status.FAILED,
}
_OF_FILE = ("[OK]", "[FAIL]")


def sympy(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    # The headings of its tracebacks come first: what the lines say afterwards wins.
    for line in lines(text):
        yield from _heading(line)
    for raw in lines(text):
        line = raw.strip()
        if not line.startswith("test_"):
            continue
        test = line.split(maxsplit=1)[0]
        status = next((s for end, s in _ENDS.items() if line.endswith(end)), None)
        if status:
            yield Sighting(test, status)
        else:
            yield from _last_of_file(line, test)


def _heading(line: str) -> Iterator[Sighting]:
    """As in `____ path/test_x.py:test_y ____`."""
    rest = line.partition(" ")[2]
    end = rest.rfind(" ")
    cut = rest.rfind(".py:", 0, end) if end >= 0 else -1
    if cut >= 0:
        yield Sighting(f"{rest[:cut]}.py:{rest[cut + 4 : end]}", Status.FAILED)


def _last_of_file(line: str, test: str) -> Iterator[Sighting]:
    """The last line of a file also says how the file did; nobody reads such a line."""
    body = line
    for word in _OF_FILE:
        body = body.removesuffix(word).rstrip()
    for end, status in {**_ENDS, **_ASIDES}.items():
        if body.endswith(end):
            yield aside(test, status)
            return
