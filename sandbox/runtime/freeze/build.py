"""The freeze's programs, built from the C beside this file, once for each store.

A static program, so that it runs in any image, and a library for the Python that is process 1 of an
embedded box. Built here and not shipped: a binary in a repository is nobody's to read.
"""

import ctypes
import errno
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from sandbox.errors import NetworkFault, RuntimeFault
from sandbox.runtime.fetch import fetch, pypi_url
from sandbox.runtime.store import Store

NATIVE = Path(__file__).with_name("native")

SUPERVISOR = (
    *("answer.c", "axis.c", "begin.c", "chance.c", "door.c", "files.c", "filter.c", "guard.c"),
    *("serve.c", "settings.c", "swift.c", "target.c", "text.c", "vdso.c", "waits.c"),
)


@dataclass(frozen=True)
class Output:
    name: str
    sources: tuple[str, ...]
    kind: Literal["static", "shared"]


OUTPUTS = (
    Output("still", (*SUPERVISOR, "still.c", "probe.c"), "static"),
    Output("libstill.so", (*SUPERVISOR, "library.c", "machine.c"), "shared"),
)

FLAGS = ("-std=gnu11", "-O2", "-fvisibility=hidden", "-pthread", "-s")
KIND_FLAGS: Mapping[str, tuple[str, ...]] = {
    "static": ("-static",),
    "shared": ("-shared", "-fPIC", "-Wl,-z,now"),
}

ZIG = "ziglang-0.15.2-py3-none-manylinux_2_12_x86_64.manylinux2010_x86_64.musllinux_1_1_x86_64.whl"
ZIG_SHA256 = "806316453d1ede7174ed3fefb8e5348154629089c3bb5fe812dfd0e172fac130"
"""A C compiler with its C libraries, in one wheel: for machines that have none."""

COMPILE_SECONDS = 300


@dataclass(frozen=True)
class Programs:
    folder: Path
    still: Path
    library: Path

    def program(self, name: str) -> Path:
        return self.folder / name


@dataclass(frozen=True)
class Compiler:
    """`identity` is what a result depends on besides sources and flags."""

    identity: str
    static: tuple[str, ...]
    shared: tuple[str, ...]

    def command(self, output: Output, target: Path) -> list[str]:
        compiler = self.static if output.kind == "static" else self.shared
        sources = [str(NATIVE / name) for name in output.sources]
        return [*compiler, *FLAGS, *KIND_FLAGS[output.kind], "-o", str(target), *sources]


def programs(store: Store, *, path: str | None = None) -> Programs:
    """`path` is where compilers are looked for, instead of the environment's PATH."""
    compilers = list(_installed(path))
    homes = [_home(store, c) for c in (*compilers, _zig(Path()))]
    for home in homes:
        if home.is_dir():
            return _programs(home)
    said = []
    with store.lock("programs"):
        for compiler, home in zip(compilers, homes, strict=False):
            if home.is_dir() or not (trouble := _build(store, compiler, home)):
                return _programs(home)
            said.append(trouble)
        if not homes[-1].is_dir():
            _build_with_zig(store, homes[-1], said)
    return _programs(homes[-1])


def _programs(home: Path) -> Programs:
    return Programs(home, home / "still", home / "libstill.so")


def _home(store: Store, compiler: Compiler) -> Path:
    seen = hashlib.sha256(repr((compiler.identity, FLAGS, KIND_FLAGS, OUTPUTS)).encode())
    for file in sorted(NATIVE.glob("*.[ch]")):
        seen.update(f"{file.name} {file.stat().st_size}\n".encode())
        seen.update(file.read_bytes())
    return store.root / "programs" / seen.hexdigest()


def _installed(path: str | None) -> Iterator[Compiler]:
    """Those on the machine, the smaller result first; whether one can link statically shows later."""
    shared = shutil.which("cc", path=path)
    for name in ("musl-gcc", "cc"):
        static = shutil.which(name, path=path)
        if static and shared:
            yield Compiler(f"{_version(static)}; {_version(shared)}", (static,), (shared,))


def _version(compiler: str) -> str:
    asked = [compiler, "--version"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    return f"{compiler} {(done.stdout.splitlines() or [''])[0]}"


def _zig(folder: Path) -> Compiler:
    command = (str(folder / "ziglang" / "zig"), "cc", "-target")
    machine = platform.machine()
    return Compiler(
        ZIG, (*command, f"{machine}-linux-musl"), (*command, f"{machine}-linux-gnu.2.17")
    )


def _build(store: Store, compiler: Compiler, home: Path) -> str:
    """Why it cannot be built so, or "" when it stands at `home`."""
    with store.scratch() as scratch:
        made = scratch / "programs"
        made.mkdir()
        for output in OUTPUTS:
            if trouble := _compile(compiler, output, made / output.name, scratch):
                return trouble
        for entry in (*made.iterdir(), made):
            entry.chmod(0o755)
            os.utime(entry, (0, 0))
        home.parent.mkdir(parents=True, exist_ok=True)
        os.replace(made, home)  # noqa: PTH105
    return ""


def _compile(compiler: Compiler, output: Output, target: Path, scratch: Path) -> str:
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "ZIG_GLOBAL_CACHE_DIR": str(scratch / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(scratch / "zig"),
    }
    command = compiler.command(output, target)
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=scratch,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMPILE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"{command[0]}: {e}"
    if done.returncode == 0:
        return ""
    return f"{command[0]} cannot build {output.name}: {done.stderr.strip()[-800:]}"


def _build_with_zig(store: Store, home: Path, said: Sequence[str]) -> None:
    hint = "apt-get install musl-tools gcc, or gcc with libc6-dev, or let this machine reach PyPI"
    before = f" ({'; '.join(said)})" if said else ""
    try:
        with _unpacked_zig(store) as folder:
            trouble = _build(store, _zig(folder), home)
    except NetworkFault as e:
        raise RuntimeFault(
            f"no C compiler to build the clock's freeze with: {e}{before}", hint=hint, retry=e.retry
        ) from e
    if trouble:
        raise RuntimeFault(f"{trouble}{before}", hint=hint, retry=False)


@contextmanager
def _unpacked_zig(store: Store) -> Iterator[Path]:
    """Needed once: what stays is the wheel, not the 300 MB it unpacks to."""
    urls = (pypi_url("ziglang", name) for name in [ZIG])
    wheel = fetch(store, urls, sha256=ZIG_SHA256, name=ZIG, fault=RuntimeFault)
    with store.scratch() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        (folder / "ziglang" / "zig").chmod(0o755)
        yield folder


TRY_A_LISTENER = """
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(allow)))
libc.prctl(38, 1, 0, 0, 0)
got = libc.syscall(317, 1, ctypes.c_ulong(8), program)
sys.exit(0 if got >= 0 else ctypes.get_errno())
"""
"""In a child, because a filter stays: no_new_privs, then seccomp() with NEW_LISTENER."""


@lru_cache(maxsize=1)
def lacks() -> str:
    """Why the clock cannot be frozen by supervisor on this machine; "" when it can."""
    if (machine := platform.machine()) != "x86_64":
        return f"the supervisor knows x86_64, and this is {machine}"
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return "this Python is a 32-bit program"
    asked = [sys.executable, "-I", "-S", "-c", TRY_A_LISTENER]
    done = subprocess.run(asked, capture_output=True, check=False, timeout=60)
    if done.returncode == 0:
        return ""
    if done.returncode == errno.EBUSY:
        return "a seccomp supervisor of somebody else's watches this process, and two cannot"
    reason = os.strerror(done.returncode) if done.returncode > 0 else "it was killed"
    return f"seccomp gives no listener here: {reason}"
