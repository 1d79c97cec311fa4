"""A runtime in memory: no process, no engine, no isolation. For tests of agents and harness code.

    def reply(box: FakeBox, call: Call) -> ExecResult | None:
        return said("3 passed") if call.command == "pytest" else None

    with FakeRuntime(reply).create(BoxSpec(image=NO_IMAGE, workdir="/work")) as box: ...

A box is a dict of files and a function that answers for every program. Files come from the seeds
and from `put`; `rm -rf --` and `test -d` work on them, and the function may change them. The
clock of one that should have its own stands where it starts: `date +%s` and the probe tell it. The
terminal's other end is a thread that reads what `sandbox.runtime.terminal` sends: it asks the
function for each command, knows `cd DIR` and `exit N`, and ends at ^C what was answered with the
exit code None.

What it does not do: run anything, hold back anything, look into the image, keep empty folders,
follow links, set variables, read what is typed into a program or its input, echo, or wrap lines. A snapshot
holds files only. It is no entry point on purpose: nothing that is run by name can end up without
isolation.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Self

from sandbox.errors import RuntimeFault
from sandbox.formats.digest import Entry
from sandbox.model.task import Digest
from sandbox.runtime import fakestill
from sandbox.runtime.base import STATUS_BYTES, Capabilities, Change, ExecResult, Scope, Stats
from sandbox.runtime.fakepty import FakePty
from sandbox.runtime.fakeshell import NOT_FOUND, UNANSWERED
from sandbox.runtime.fakeshell import said as said  # noqa: PLC0414 - users import it from here
from sandbox.runtime.spec import BoxSpec, Image, Snapshot
from sandbox.runtime.tarball import pack, read

NO_IMAGE = Image(name="none", digest=Digest("sha256:" + "0" * 64), config=Path(), layers=(), env={})
_MOST_BYTES, _MOST_FILES = 1 << 30, 1_000_000
WHITEOUT = ".wh."


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A program somebody wants to run."""

    argv: tuple[str, ...]
    """A command typed into the terminal arrives as ("bash", "-c", command)."""
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    """What was added to the box's environment for it."""
    input: bytes = b""
    seconds: float | None = None
    user: str | None = None
    """If it is not the box's own."""
    typed: bool = False
    """Did it come through the terminal?"""

    @property
    def command(self) -> str:
        return self.argv[2] if self.typed else " ".join(self.argv)


Reply = Callable[["FakeBox", Call], ExecResult | None]
"""None: no answer of its own; the box then knows `cd`, `exit`, `test -d` and `rm -rf --` only."""


def no_reply(box: "FakeBox", call: Call) -> None:
    del box, call


class FakeRuntime:
    name = "fake"

    def __init__(self, reply: Reply = no_reply, *, still: str = "") -> None:
        """still: why its boxes can have no clock of their own, if they cannot."""
        self._still = still
        self.boxes: list[FakeBox] = []
        """Every box that was made, destroyed ones included: look at their `calls`."""
        self._reply = reply

    def create(self, spec: BoxSpec) -> "FakeBox":
        if spec.still and self._still:
            raise RuntimeFault(f"this box can have no clock of its own: {self._still}")
        box = FakeBox(f"fake-{len(self.boxes) + 1}", spec, self._reply, self.create)
        self.boxes.append(box)
        box.reset()
        return box

    def capabilities(self) -> Capabilities:
        return Capabilities(
            limits=frozenset(),
            disk=("watch",),
            cgroups="none",
            user_namespace=False,
            rootless=False,
            freeze=False,
            snapshot=True,
            still=self._still,
        )

    def ensure_image(self, image: Image) -> None:
        del image

    def warm(self, spec: BoxSpec, boxes: int) -> None:
        del spec, boxes

    def reap(self) -> list[str]:
        return []

    def close(self) -> None:
        for box in self.boxes:
            box.destroy()


class FakeBox:
    def __init__(
        self, name: str, spec: BoxSpec, reply: Reply, create: "Callable[[BoxSpec], FakeBox]"
    ) -> None:
        self.id = name
        self.spec = spec
        self.files: dict[str, Entry] = {}
        """Absolute path → what is there."""
        self.calls: list[Call] = []
        self._reply = reply
        self._create = create
        self._base: dict[str, Entry] = {}
        self._ptys: list[FakePty] = []
        self._stopped = self._destroyed = False

    def write(self, path: str, data: bytes) -> None:
        self.files[path] = Entry(path.lstrip("/"), "file", data)

    def open_pty(
        self,
        argv: Sequence[str],
        *,
        rows: int = 40,
        cols: int = 160,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        wires: bool = False,
    ) -> "FakePty":
        """Whatever the program: the stand-in of a shell."""
        del argv, rows, cols, env, user, wires
        self._require(stopped=self._stopped)

        def ask(command: str, where: str) -> ExecResult | None:
            call = Call(argv=("bash", "-c", command), cwd=where, typed=True)
            return self.answer(call) or fakestill.told(self.spec, call.argv)

        pty = FakePty(ask, cwd or self.spec.workdir)
        self._ptys.append(pty)
        return pty

    def exec(
        self,
        argv: Sequence[str],
        *,
        seconds: float,
        input: bytes = b"",  # noqa: A002
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        trusted: bool = False,
        output_bytes: int = STATUS_BYTES,
    ) -> ExecResult:
        del trusted
        self._require(stopped=self._stopped)
        where = cwd or self.spec.workdir
        call = Call(
            argv=tuple(argv), cwd=where, env=env or {}, input=input, seconds=seconds, user=user
        )
        done = self.answer(call) or fakestill.told(self.spec, argv) or self._known(call)
        if done.timed_out:
            self.stop()
        return replace(
            done,
            stdout=done.stdout[:output_bytes],
            stderr=done.stderr[:output_bytes],
            truncated=max(len(done.stdout), len(done.stderr)) > output_bytes,
        )

    def answer(self, call: Call) -> ExecResult | None:
        self.calls.append(call)
        return self._reply(self, call)

    def _known(self, call: Call) -> ExecResult:
        match call.argv:
            case ("test", "-d", path):
                home = path in ("/", self.spec.workdir)
                return said(exit_code=0 if home or any(self._below(path)) else 1)
            case ("rm", "-rf", "--", *paths):
                for path in paths:
                    for name in [path, *self._below(path)]:
                        self.files.pop(name, None)
                return said()
            case ("rmdir", *_):
                return said()  # there are no empty folders
            case _:
                return said("", NOT_FOUND, errors=f"{call.argv[0]}: {UNANSWERED}\n")

    def put(self, archive: bytes, folder: str) -> None:
        self._require(stopped=self._stopped)
        for e in read(iter((archive,)), max_bytes=_MOST_BYTES, max_files=_MOST_FILES):
            path = str(PurePosixPath("/", folder, e.path))
            self.files[path] = replace(e, path=path.lstrip("/"))

    def get(self, path: str) -> Iterator[bytes]:
        self._require()
        found = [path] if path in self.files else list(self._below(path))
        if not found:
            raise FileNotFoundError(path)
        above = len(str(PurePosixPath(path).parent).rstrip("/")) + 1
        return iter([pack(replace(self.files[name], path=name[above:]) for name in found)])

    def changes(self) -> list[Change]:
        self._require()
        gone = [Change(path, "deleted") for path in self._base.keys() - self.files.keys()]
        new = [
            Change(path, "modified" if path in self._base else "added")
            for path, entry in self.files.items()
            if self._base.get(path) != entry
        ]
        return sorted(gone + new)

    def snapshot(self, tar: Path) -> Snapshot:
        """As it says, a tar of what changed; `.wh.NAME` for what is gone."""
        entries = []
        for change in self.changes():
            if change.kind == "deleted":
                path = PurePosixPath(change.path.lstrip("/"))
                entries.append(Entry(str(path.with_name(WHITEOUT + path.name)), "file", b""))
            else:
                entries.append(self.files[change.path])
        data = pack(entries)
        tar.write_bytes(data)
        return Snapshot(
            image=self.spec.image.digest,
            seeds=tuple(seed.folder.name for seed in self.spec.seeds),
            tar=tar,
            sha256=hashlib.sha256(data).hexdigest(),
            clock_ns=self.spec.still.at_ns if self.spec.still else None,
        )

    def fork(self) -> "FakeBox":
        self._require()
        box = self._create(self.spec)
        box.files = dict(self.files)
        return box

    def reset(self) -> None:
        """Its files are those of the seeds and of the snapshot again."""
        self._require()
        self.kill_all()
        self._stopped = False
        self.files.clear()
        for seed in self.spec.seeds:
            self.put(seed.tar.read_bytes(), "/")
        self._base = dict(self.files)
        if self.spec.snapshot:
            self._restore(self.spec.snapshot)

    def _restore(self, snapshot: Snapshot) -> None:
        self.put(snapshot.tar.read_bytes(), "/")
        for path in [p for p in self.files if PurePosixPath(p).name.startswith(WHITEOUT)]:
            name = PurePosixPath(path).name.removeprefix(WHITEOUT)
            del self.files[path]
            self.files.pop(str(PurePosixPath(path).with_name(name)), None)

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...

    def kill_all(self) -> None:
        for pty in self._ptys:
            pty.hang_up()

    def signal(
        self, shell: int, number: int, *, scope: Scope = "foreground", more: Sequence[int] = ()
    ) -> list[int]:
        """What runs on its terminals ends of any signal; there are no processes to name."""
        del shell, more
        for pty in self._ptys if number and scope != "none" else ():
            pty.signalled(number)
        return []

    def stats(self) -> Stats:
        """Its files take 4 KiB each at least; nothing else is used."""
        self._require()
        disk = sum(max(len(entry.data), 4096) for entry in self.files.values())
        return Stats(
            memory_bytes=0,
            processes=0,
            cpu_seconds=0.0,
            disk_bytes=disk,
            terminals=len(self._ptys),
            oom_kills=0,
            forks_refused=0,
        )

    def reached(self) -> str:
        return ""

    def stop(self) -> None:
        self._stopped = True
        for pty in self._ptys:
            pty.hang_up()

    def lost(self) -> bool:
        return self._destroyed

    def destroy(self) -> None:
        self.stop()
        self._destroyed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def _below(self, folder: str) -> Iterator[str]:
        return (name for name in sorted(self.files) if name.startswith(folder.rstrip("/") + "/"))

    def _require(self, *, stopped: bool = False) -> None:
        if self._destroyed or stopped:
            raise RuntimeFault(f"box {self.id} is gone")
