"""Bytecode for the image's Python sources, made by the image's own Python.

No root, namespace or chroot: the unpacked interpreter is started through the unpacked loader.
Without this layer every box would compile the standard library again at its first command.
"""

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox.errors import ImageFault
from sandbox.runtime.image.entry import Entry, with_parents
from sandbox.runtime.image.layout import (
    CACHE_TAG,
    INTERPRETER,
    LIBRARIES,
    LOADER,
    SOURCE_FOLDERS,
    inside,
)

PARTS = 2
"""Fixed, not the number of cores: bytes of one file depend on what was compiled before it."""
COMPILE_SECONDS = 600
SCRIPT = Path(__file__).with_name("compile_sources.py")


def pyc_entries(system: Path, folders: Sequence[Path], scratch: Path) -> list[Entry]:
    """Bytecode of all sources in `folders`, unpacked layers of which the later one wins.

    `system` is the unpacked layer that holds the interpreter.
    """
    sources: dict[str, Path] = {}
    for layer in folders:
        sources |= _sources(layer)
    ordered = sorted(sources.items())
    with ThreadPoolExecutor(PARTS) as pool:
        parts = pool.map(
            lambda n: _compile(system, ordered[n::PARTS], scratch / str(n)), range(PARTS)
        )
        return list(with_parents(e for part in parts for e in part).values())


def run_python(system: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """The image's interpreter, bare: its own libraries, no site, no environment of ours."""
    libraries = ":".join(str(system / name) for name in LIBRARIES)
    command = [
        *(str(system / LOADER), "--library-path", libraries, str(system / INTERPRETER)),
        *("-S", "-s", "-B", "-W", "ignore"),
        *arguments,
    ]
    # Only the environment tells this Python where its library is, so -E and -I are no option.
    environment = {"PYTHONHOME": str(system / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        command,
        env=environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=COMPILE_SECONDS,
    )


def _sources(layer: Path) -> dict[str, Path]:
    """Path in the image → the file that has its content."""
    found = {}
    for start in SOURCE_FOLDERS:
        for top, _, names in os.walk(layer / start):
            for path in (Path(top) / name for name in names if name.endswith(".py")):
                source = _through_link(layer, path)
                if source.is_file() and not source.is_symlink():
                    found[path.relative_to(layer).as_posix()] = source
    return found


def _through_link(layer: Path, path: Path) -> Path:
    """Debian links sitecustomize.py into /etc: the image's own, not that of this machine."""
    if not path.is_symlink():
        return path
    target = path.parent.relative_to(layer) / path.readlink()
    return layer / inside(os.path.normpath(target))


def _compile(system: Path, sources: Sequence[tuple[str, Path]], scratch: Path) -> list[Entry]:
    out = scratch / "out"
    out.mkdir(parents=True)
    listing = scratch / "listing"
    listing.write_bytes(b"".join(os.fsencode(f"{here}\0/{path}\0") for path, here in sources))
    done = run_python(system, [str(SCRIPT), str(listing), str(out)])
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-500:]
        raise ImageFault(f"the image's Python could not compile its library: {said}", retry=False)
    results = ((path, out / str(n)) for n, (path, _) in enumerate(sources))
    return [
        Entry(_cache_path(path), "file", data=result.read_bytes())
        for path, result in results
        if result.exists()
    ]


def _cache_path(source: str) -> str:
    folder, _, name = source.rpartition("/")
    return f"{folder}/__pycache__/{name.removesuffix('.py')}.{CACHE_TAG}.pyc"
