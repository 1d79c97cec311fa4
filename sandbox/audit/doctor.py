"""What works on this machine, what is missing, and how to mend it."""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.errors import Fault
from sandbox.formats import jsonfile
from sandbox.formats.home import bundled_home
from sandbox.model.image import ImageLock
from sandbox.model.instant import seconds_of, written
from sandbox.model.task import ClockSpec
from sandbox.rollout import plugins
from sandbox.runtime.base import Runtime
from sandbox.runtime.embedded.machine import missing
from sandbox.runtime.freeze.hold import stillness
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.limits import unheld
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Progress

_IMAGE = "python-3.11"
_NEEDED_GIB = 5
_AT, _MOST_SECONDS = "2024-05-15T12:00:00Z", 60
_TELL = "import platform, time; print(platform.python_version(), int(time.time()))"
_MEND = {
    "embedded": "run as root on Linux (sudo), or use --runtime docker",
    "docker": "apt-get install docker.io, and start dockerd; or use --runtime embedded",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    name: str
    ok: bool
    found: str
    mend: str = ""
    """What to do when it is not ok."""


def examine(store: Store, progress: Progress) -> Iterator[Examined]:
    """One thing after another, as each is found out. A runtime is ok when it has run a box."""
    yield _python()
    yield _git()
    yield _disk(store)
    image = None
    try:
        image = bundled_image(store, progress)
        yield Examined(name="image", ok=True, found=f"{_IMAGE} {image.digest}")
    except Fault as e:
        yield Examined(name="image", ok=False, found=str(e), mend=e.hint)
    except OSError as e:
        yield Examined(name="image", ok=False, found=str(e), mend=_disk(store).mend)
    for name in ("embedded", "docker"):
        yield _runtime(name, store, image)


def _python() -> Examined:
    version = ".".join(str(n) for n in sys.version_info[:3])
    ok = sys.version_info >= (3, 11) and sys.platform == "linux"
    return Examined(
        name="python", ok=ok, found=f"{version} on {sys.platform}", mend="use Python 3.11 on Linux"
    )


def _git() -> Examined:
    path = shutil.which("git")
    return Examined(
        name="git", ok=path is not None, found=path or "not found", mend="apt-get install git"
    )


def _disk(store: Store) -> Examined:
    folder = store.root
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / (1 << 30)
    writable = os.access(folder, os.W_OK)
    found = f"{store.root}: {free:.1f} GiB free" + ("" if writable else ", not writable")
    mend = f"free {_NEEDED_GIB} GiB there, or set STILLROOM_STORE to another folder"
    return Examined(name="store", ok=writable and free > _NEEDED_GIB, found=found, mend=mend)


def bundled_image(store: Store, progress: Progress) -> Image:
    """The image that every machine can have: the base of the bundled tasks."""
    path = bundled_home() / "repos" / "images" / f"{_IMAGE}.lock.json"
    return ensure(store, jsonfile.load(path, ImageLock), progress)


def _runtime(name: str, store: Store, image: Image | None) -> Examined:
    lacks = missing() if name == "embedded" else []
    if lacks:
        return Examined(name=name, ok=False, found="; ".join(lacks), mend=_MEND[name])
    if image is None:
        return Examined(name=name, ok=False, found="not tried without an image")
    runtime = plugins.runtime(name, store)
    try:
        return _try_box(name, runtime, image)
    except Fault as e:
        return Examined(name=name, ok=False, found=str(e), mend=_MEND[name])
    finally:
        runtime.close()


def _try_box(name: str, runtime: Runtime, image: Image) -> Examined:
    able = runtime.capabilities()
    still = None if able.still else stillness(ClockSpec(at=_AT))
    with runtime.create(BoxSpec(image=image, still=still)) as box:
        done = box.exec(["python3", "-c", _TELL], seconds=60)
    if done.exit_code != 0:
        return Examined(name=name, ok=False, found=done.stderr.decode())
    version, _, seconds = done.stdout.decode().strip().partition(" ")
    if still and not 0 <= int(seconds) - seconds_of(_AT) <= _MOST_SECONDS:
        said = f"the clock of a box says {written(int(seconds))}, and was started at {_AT}"
        return Examined(name=name, ok=False, found=said)
    root = "rootless" if able.rootless else "a user namespace" if able.user_namespace else "root"
    facts = (
        f"ran Python {version} in a box",
        f"its clock held for {'every program' if still else f'most programs: {able.still}'}",
        f"cgroups {able.cgroups}",
        f"users by {root}",
        f"limits {', '.join(sorted(able.limits))}",
        f"disk by {', '.join(able.disk)}",
    )
    return Examined(name=name, ok=True, found="; ".join(facts), mend=unheld(able))


def leftovers(store: Store) -> list[str]:
    """What dead runs left, removed: with every runtime that can be reached."""
    from sandbox.rollout.suite import reap  # noqa: PLC0415 - only when it is asked for

    gone: list[str] = []
    for name in ("embedded", "docker"):
        runtime = plugins.runtime(name, store)
        try:
            gone += reap(runtime, store)
        except Fault:
            continue
        finally:
            runtime.close()
    return gone
