"""Which programs are compiled for the table, and how."""

from pathlib import Path

from sandbox.runtime.store import Store
from tests.support.absent import absent
from tests.support.compiled import c, compiled, go, lacking, rust

SOURCES = Path(__file__).with_name("programs")
PROGRAMS = (
    c("now_dynamic", "now.c"),
    c("now_static", "now.c", "-static"),
    c("now_musl", "now.c", "-static", compiler="musl-gcc"),
    c("now_pie", "now.c", "-static-pie"),
    c("raw", "raw.c"),
    c("bare", "bare.S", "-nostdlib", "-static"),
    c("waits", "waits.c", "-lrt"),
    c("waits_static", "waits.c", "-static", "-lrt"),
    c("threads", "threads.c"),
    c("storm", "storm.c"),
    c("vfork", "vfork.c"),
    c("looks", "looks.c"),
    c("looks_static", "looks.c", "-static"),
    c("looks_musl", "looks.c", "-static", compiler="musl-gcc"),
    c("watch", "watch.c", "-static"),
    go("now_go", "now.go", "plain.go", cgo=False),
    go("now_cgo", "now.go", "withc.go", cgo=True),
    rust("now_rust", "now.rs"),
    rust("now_rust_static", "now.rs", "-Ctarget-feature=+crt-static"),
)


def zoo(store: Store) -> Path:
    """The folder to be mounted at /zoo."""
    if missing := lacking(PROGRAMS):
        absent(f"not installed: {', '.join(missing)}")
    return compiled(store, SOURCES, PROGRAMS)
