"""A task's box, made once by its Dockerfile's steps: what they leave behind is kept, to the byte."""

import re
import shlex
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from sandbox.adapters.harbor.foreign import Chore, Foreign
from sandbox.adapters.harbor.report import Report
from sandbox.adapters.taskhome import write_entries
from sandbox.formats.digest import Entry, folder_entries
from sandbox.formats.dockerignore import Ignored, load_ignored
from sandbox.formats.dockersteps import Copy, Env, Run, Step, User, Workdir
from sandbox.model.task import ClockSpec, Limits
from sandbox.runtime.base import Box, ExecResult, Runtime
from sandbox.runtime.freeze.hold import held, stillness
from sandbox.runtime.spec import PATH, BoxSpec, Image, Mount, Seed
from sandbox.runtime.store import Store
from sandbox.runtime.tarball import pack

CLOCK = "2025-06-18T12:00:00Z"
"""Midweek, mid-month, noon: minutes of ticking cross no boundary."""
TOOLS = "/run/stillroom-tools"
WANTED = "/run/stillroom-wanted/list"
LIMITS = Limits(memory_mib=4096, pids=1024, disk_mib=8192, file_mib=4096)
_STATUS_BYTES = 1 << 20
_WORDS = 600
_AT_ONCE = 500
_LINKED = re.compile(
    r"\bln\s+(?:-(?!\w*f)\w+\s+)*[^\s-]\S*\s+(/usr/(?:local/)?bin/(?:python|pip)3?)(?=[\s;&]|$)"
)
"""What links a name of Python's, not by force: it is there already, where theirs has none."""


@contextmanager
def tool_box(
    image: Image,
    runtime: Runtime,
    store: Store,
    tools: Sequence[Entry],
    seeds: tuple[Seed, ...] = (),
) -> Iterator[Box]:
    """A box with installers that answer offline."""
    with store.scratch() as scratch:
        folder = scratch / "tools"
        write_entries(folder, tools)
        spec = BoxSpec(
            image=image,
            seeds=seeds,
            limits=LIMITS,
            workdir="/",
            mounts=(Mount(source=folder, target=TOOLS),),
            still=stillness(ClockSpec(at=CLOCK)),
            labels={"role": "import"},
        )
        with (
            held(spec, runtime, store.scratch, strict=False) as hold,
            runtime.create(hold.spec) as box,
        ):
            box.exec(["mkdir", "-p", "-m", "777", str(PurePosixPath(WANTED).parent)], seconds=60)
            yield box


@dataclass(slots=True)
class Builder:
    """Does in a box what a Dockerfile says."""

    box: Box
    task: Foreign
    report: Report
    env: dict[str, str] = field(default_factory=dict)
    at: str = "/"
    user: str = ""
    ignored: Ignored = field(default_factory=Ignored)

    def build(self) -> None:
        """Raises Refused for what does not go as it should."""
        self.ignored = load_ignored(self.task.context)
        # Of a package that our images leave out: Dockerfiles write there, and nobody reads it.
        self._must(["mkdir", "-p", "/etc/apt/sources.list.d"], "FROM", self.task.image_where)
        for step in self.task.steps:
            self._step(step)
        self._must(["mkdir", "-p", self.task.workdir], "WORKDIR", self.task.image_where)
        self.at, self.env = self.task.workdir, {**self.env, **self.task.env}

    def do(self, chore: Chore) -> ExecResult | None:
        """Its files, then its script; None where there is none."""
        for place, target in chore.files:
            archive, folder = put_of(place, target)
            self.box.exec(["mkdir", "-p", folder], seconds=60, cwd="/")
            self.box.put(archive, folder)
        if not chore.script:
            return None
        return self.run(chore.script, chore.env, chore.seconds)

    def run(
        self,
        script: str,
        env: dict[str, str],
        seconds: float,
        shell: Sequence[str] = ("bash", "-c"),
    ) -> ExecResult:
        return self.box.exec(
            [*shell, script],
            seconds=seconds,
            cwd=self.at,
            env=self._environment(env),
            output_bytes=_STATUS_BYTES,
        )

    def settle_repository(self) -> None:
        """The working directory becomes a repository of ours, of one commit: so it had no other.

        Raises Refused.
        """
        at, where = self.task.workdir, self.task.image_where
        if not self._is_folder(f"{at}/.git"):
            return
        script = "git rev-list --count --all && git status --porcelain --ignored | head -n 5"
        done = self.run(f"cd {shlex.quote(at)} && {script}", {}, 120.0)
        if done.stdout.decode("utf-8", "replace").split() == ["1"]:
            note = "the repository of the working directory has one commit, which is made anew"
            self.report.changed("WORKDIR", note, where)
            return
        note = "the working directory is a repository with a history, or with changes, of its own"
        self.report.refused("WORKDIR", f"{note}: only one commit can be had here", where)
        self.report.require_none_refused()

    def wanted(self) -> list[str]:
        """What was asked of the installers in vain, since this was last asked."""
        told = self.box.exec(["sh", "-c", f"cat {WANTED} 2>/dev/null; rm -f {WANTED}"], seconds=60)
        return list(dict.fromkeys(told.stdout.decode("utf-8", "replace").splitlines()))

    def _environment(self, env: dict[str, str]) -> dict[str, str]:
        whole = {**self.env, **env}
        path = whole.get("PATH", PATH)
        python = whole.get("PYTHONPATH", "")
        return {
            **whole,
            "PATH": f"{TOOLS}/bin:{path}",
            "PYTHONPATH": ":".join(p for p in (f"{TOOLS}/site", python) if p),
            "STILLROOM_TOOLS": f"{TOOLS}/plan.json",
            "STILLROOM_BIN": f"{TOOLS}/bin",
            "STILLROOM_WANTED": WANTED,
            "PIP_BREAK_SYSTEM_PACKAGES": "1",
            "PIP_NO_INDEX": "1",
            "DEBIAN_FRONTEND": "noninteractive",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _step(self, step: Step) -> None:
        match step:
            case Env():
                values = {k: v.replace("$PATH", PATH) for k, v in step.values.items()}
                self.env |= values
            case Workdir():
                self.at = str(PurePosixPath(self.at) / step.path)
                self._must(["mkdir", "-p", self.at], "WORKDIR", step.where)
            case Copy():
                self._copy(step)
            case Run():
                self._run(step)
            case User():
                self.user = step.name
            case _:
                pass

    def _run(self, step: Run) -> None:
        for name in linked(step.script):
            self.box.exec(["sh", "-c", '[ ! -L "$0" ] || rm "$0"', name], seconds=60)
        args = {k: v for k, v in step.args.items() if k not in self.env}
        done = self.run(step.script, args, self.task.build_seconds, step.shell)
        lacks = [] if done.timed_out else self.wanted()
        if lacks:
            self.report.refused("build-time network", ", ".join(lacks)[:_WORDS], step.where)
        elif done.exit_code != 0:
            self.report.refused("RUN", failed(done), step.where)
        self.report.require_none_refused()

    def _copy(self, step: Copy) -> None:
        target = str(PurePosixPath(self.at) / step.target)
        if step.text is not None:
            entry = Entry(PurePosixPath(target).name, "file", step.text.encode())
            self._put(step, [entry], target)
        else:
            self._copy_files(step, target)
        if step.owner and step.owner.partition(":")[0] not in ("root", "0"):
            note = f"files are root's, not `{step.owner}`'s"
            self.report.changed("COPY --chown", note, step.where)

    def _copy_files(self, step: Copy, target: str) -> None:
        found = list(self._sources(step))
        several = len(found) > 1 or step.target.endswith(("/", "/.")) or step.target == "."
        for place in found:
            if place.is_dir():
                self._put(step, list(self._kept(place)), f"{target}/", inner=True)
            elif step.unpack and tarfile.is_tarfile(place):
                self._put(step, [_entry(place, ".stillroom.tar")], f"{target}/", inner=True)
                inner = f"{target}/.stillroom.tar"
                self._must(["tar", "-xf", inner, "-C", target], "ADD", step.where)
                self._must(["rm", inner], "ADD", step.where)
            elif several or self._is_folder(target):
                self._put(step, [_entry(place, place.name)], f"{target}/", inner=True)
            else:
                self._put(step, [_entry(place, PurePosixPath(target).name)], target)

    def _sources(self, step: Copy) -> Iterator[Path]:
        top = self.task.context.resolve()
        for source in step.sources:
            said = source.lstrip("/") or "."
            found = sorted(top.glob(said)) if any(c in said for c in "*?[") else [top / said]
            found = [
                p
                for p in found
                if p.exists() and PurePosixPath(p.relative_to(top)) not in self.ignored
            ]
            found = [p for p in found if p.resolve().is_relative_to(top)]
            if not found:
                note = f"`{source}` is not in {self.task.context.name}/"
                self.report.refused("COPY", note, step.where)
                self.report.require_none_refused()
            yield from found

    def _kept(self, folder: Path) -> Iterator[Entry]:
        top = self.task.context.resolve()
        inner = PurePosixPath(folder.resolve().relative_to(top))
        for e in folder_entries(folder):
            if inner / e.path not in self.ignored:
                yield e

    def _put(
        self, step: Copy, entries: Sequence[Entry], target: str, *, inner: bool = False
    ) -> None:
        folder = target.rstrip("/") if inner else str(PurePosixPath(target).parent)
        self._must(["mkdir", "-p", folder or "/"], "COPY", step.where)
        self.box.put(pack(entries), folder or "/")
        if step.mode is None:
            return
        places = [f"{folder}/{e.path}" for e in entries if e.kind != "link"]
        for n in range(0, len(places), _AT_ONCE):
            command = ["chmod", f"{step.mode:o}", *places[n : n + _AT_ONCE]]
            self._must(command, "COPY", step.where)

    def _is_folder(self, path: str) -> bool:
        return self.box.exec(["test", "-d", path], seconds=60).exit_code == 0

    def _must(self, command: list[str], name: str, where: str) -> None:
        done = self.box.exec(command, seconds=120, cwd="/")
        if done.exit_code != 0:
            self.report.refused(name, failed(done), where)
            self.report.require_none_refused()


def linked(script: str) -> list[str]:
    """Names of Python's that a step links to another program."""
    return _LINKED.findall(script)


def put_of(place: Path, target: str) -> tuple[bytes, str]:
    """An archive, and the folder it is for."""
    if place.is_dir():
        return pack([Entry(e.path, e.kind, e.data) for e in folder_entries(place)]), target
    path = PurePosixPath(target)
    return pack([_entry(place, path.name)]), str(path.parent)


def _entry(place: Path, name: str) -> Entry:
    return Entry(name, "exec" if place.stat().st_mode & 0o100 else "file", place.read_bytes())


def failed(done: ExecResult) -> str:
    words = (done.stdout + done.stderr).decode("utf-8", "replace").strip()[-_WORDS:]
    how = "its time was up" if done.timed_out else f"it ended with {done.exit_code}"
    return f"{how}{f' ({done.limit})' if done.limit else ''}; its last words: {words!r}"
