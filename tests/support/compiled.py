"""Programs for tests, compiled once for each store: C in three ways, assembler, Go, Rust."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.runtime.store import Store

SECONDS = 300
_C = ("-O2", "-Wall", "-Werror", "-pthread")


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    command: tuple[str, ...]
    """In the folder of the sources; the program is to be named by what follows, `-o NAME`."""
    env: tuple[tuple[str, str], ...] = ()


def c(name: str, source: str, *options: str, compiler: str = "cc") -> Program:
    return Program(name, (compiler, *_C, source, *options))


def go(name: str, *files: str, cgo: bool) -> Program:
    return Program(name, ("go", "build", *files), (("CGO_ENABLED", "1" if cgo else "0"),))


def rust(name: str, source: str, *options: str) -> Program:
    return Program(name, ("rustc", "--edition=2021", "-O", source, *options))


def lacking(programs: Sequence[Program]) -> list[str]:
    """Compilers that this machine has not."""
    return sorted({p.command[0] for p in programs if not shutil.which(p.command[0])})


def compiled(store: Store, sources: Path, programs: Sequence[Program]) -> Path:
    """A folder with the sources and the programs made of them. Raises what a compiler says."""
    home = store.root / "programs" / f"zoo-{_digest(sources, programs)}"
    if home.is_dir():
        return home
    with store.lock("zoo"), store.scratch() as scratch:
        if home.is_dir():
            return home
        made = scratch / "made"
        shutil.copytree(sources, made, ignore=shutil.ignore_patterns("__pycache__"))
        for program in programs:
            _compile(program, made, scratch)
        for path in (made, *made.iterdir()):
            path.chmod(0o755)
        home.parent.mkdir(parents=True, exist_ok=True)
        made.replace(home)
    return home


def _digest(sources: Path, programs: Sequence[Program]) -> str:
    seen = hashlib.sha256(repr(programs).encode())
    for compiler in sorted({p.command[0] for p in programs}):
        seen.update(str(shutil.which(compiler)).encode())
    for file in sorted(p for p in sources.iterdir() if p.is_file()):
        seen.update(f"{file.name} {file.stat().st_size}\n".encode())
        seen.update(file.read_bytes())
    return seen.hexdigest()


def _compile(program: Program, folder: Path, scratch: Path) -> None:
    command, *rest = program.command
    name = ("-o", program.name)
    words = [command, "build", *name, *rest[1:]] if command == "go" else [command, *name, *rest]
    env = {**os.environ, "GOCACHE": str(scratch / "go"), "GO111MODULE": "off", "GOFLAGS": ""}
    done = subprocess.run(
        words,
        cwd=folder,
        env={**env, **dict(program.env)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-2000:]}")
