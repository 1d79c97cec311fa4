"""A folder of somebody else's into a task of ours: understood, built, solved, judged, written down."""

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.adapters.harbor import from_harbor, from_terminal_bench
from sandbox.adapters.harbor.bases import base_of
from sandbox.adapters.harbor.bench import Bench, Place
from sandbox.adapters.harbor.building import Builder, failed, tool_box
from sandbox.adapters.harbor.common import entrypoints
from sandbox.adapters.harbor.foreign import Foreign
from sandbox.adapters.harbor.judging import judged
from sandbox.adapters.harbor.made import Made, read_made
from sandbox.adapters.harbor.packages import Packages, packages_of
from sandbox.adapters.harbor.report import ImportRecord, Report
from sandbox.adapters.harbor.settingup import Setup, set_up, setups
from sandbox.adapters.harbor.tools import tools
from sandbox.adapters.harbor.writing import (
    Pinned,
    layer_of,
    write_image,
    write_repo,
)
from sandbox.adapters.taskhome import require_free
from sandbox.errors import ImageFault, UserError
from sandbox.formats import jsonfile
from sandbox.formats.digest import Entry
from sandbox.formats.harbor import is_harbor, load_harbor
from sandbox.formats.home import locate
from sandbox.formats.terminal_bench import is_terminal_bench, load_terminal_bench
from sandbox.model.image import ImageLock, ImageRecipe
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.image.resolve import relock
from sandbox.runtime.spec import Image

LEAVE_OUT = ("apt", "debconf", "usr-is-merged")
"""Of Debian: for installing more, which needs the network that a box has not."""
_NOT_THERE = re.compile(
    r"Unable to locate|no installation candidate|No matching distribution|ResolutionImpossible"
    r"|conflict|unmet dependencies|not available|Requires-Python|Invalid requirement"
    r"|held broken packages|no version",
    re.IGNORECASE,
)
"""What archives say of what they have not, or not together; anything else may be otherwise later."""
_ENTRY_SECONDS = 60.0


def folders_of(top: Path, kind: str) -> list[Path]:
    """The tasks at or below a folder. Raises UserError for none."""
    is_one = is_harbor if kind == "harbor" else is_terminal_bench
    if is_one(top):
        return [top]
    found = sorted(p for p in top.iterdir() if p.is_dir() and is_one(p)) if top.is_dir() else []
    if not found:
        name = "task.toml" if kind == "harbor" else "task.yaml"
        raise UserError(f"there is no {name} in {top}, nor in a folder of it", hint="name a task")
    return found


def import_folder(place: Place, folder: Path, kind: str, report: Report) -> list[ImportRecord]:
    """The tasks that one of theirs becomes. Raises Refused, SpecError or a Fault."""
    if kind == "harbor":
        found = from_harbor.understood(load_harbor(folder), report)
    else:
        theirs = load_terminal_bench(folder)
        found = from_terminal_bench.understood(theirs, report)
        from_terminal_bench.leftovers(theirs, report)
    report.require_none_refused()
    return [_Import(place, task, report).run() for task in found]


@dataclass(slots=True)
class _Import:
    place: Place
    task: Foreign
    report: Report

    def run(self) -> ImportRecord:
        place, task = self.place, self.task
        self._require_free()
        base = self._base()
        packages = packages_of(task, dict(place.bases), base, self.report)
        self.report.require_none_refused()
        recipe = ImageRecipe(
            schema=1,
            base=base.name,
            debs=packages.debs,
            leave_out=LEAVE_OUT if packages.debs else (),
            wheels=packages.wheels,
        )
        below = self._locked(recipe, base)
        try:
            pinned = self._built(recipe, base, below, packages)
            record = self._judged(pinned, packages)
        except BaseException:
            self._remove()
            raise
        path = place.home / "task_specs" / task.id / "import.json"
        jsonfile.write(path, jsonfile.dumps(record))
        return record

    def _require_free(self) -> None:
        require_free(self.place.home, self.task.id)
        there = self.place.home / "task_specs" / self.task.id
        if there.exists() and not self.place.force:
            hint = "--force writes over it"
            raise UserError(f"there is a task `{self.task.id}` already: {there}", hint=hint)

    def _remove(self) -> None:
        """Half a task is none."""
        home, name = self.place.home, self.task.id
        for folder in (
            home / "task_specs" / name,
            home / "verifiers" / name,
            home / "repos" / name,
        ):
            shutil.rmtree(folder, ignore_errors=True)
        for path in (home / "repos" / "images").glob(f"{name}.*"):
            if path.name in (f"{name}.yaml", f"{name}.lock.json", f"{name}.files.tar"):
                path.unlink()
        lock = home / "repos" / "lock.yaml"
        if lock.exists():
            old = re.compile(rf"(?m)^  {re.escape(name)}:\n(?:(?:    .*)?\n)+")
            text = old.sub("", lock.read_text(encoding="utf-8"))
            jsonfile.write(lock, re.sub(r"repos:\s*\Z", "repos: {}\n", text))

    def _base(self) -> ImageLock:
        task, home = self.task, self.place.home
        found = base_of(task.image, self.place.bases)
        if found is None:
            note = f"`{task.image}` stands for none of our images"
            self.report.refused("FROM", f"{note}: --base '{task.image}=NAME'", task.image_where)
            self.report.require_none_refused()
            raise AssertionError
        note = f"{found.name}: Debian bookworm with Python 3.11"
        if found.exact:
            self.report.mapped("FROM", f"`{task.image}` is {note}", task.image_where)
        else:
            more = f", with {', '.join(found.debs)}" if found.debs else ""
            self.report.changed("FROM", f"`{task.image}` is {note}{more}", task.image_where)
        return jsonfile.load(locate(home, f"repos/images/{found.name}.lock.json"), ImageLock)

    def _locked(self, recipe: ImageRecipe, base: ImageLock) -> ImageLock:
        if not recipe.debs and not recipe.wheels:
            return base
        place = self.place
        try:
            return relock(place.store, self.task.id, recipe, base, place.progress, place.home)
        except ImageFault as e:
            if not _NOT_THERE.search(str(e)):
                raise
            asked = ", ".join((*recipe.debs, *recipe.wheels))
            self.report.refused("packages", f"{e} (asked: {asked})", self.task.image_where)
            self.report.require_none_refused()
            raise

    def _built(
        self, recipe: ImageRecipe, base: ImageLock, below: ImageLock, packages: Packages
    ) -> Pinned:
        place, task = self.place, self.task
        image = ensure(place.store, below, place.progress, home=place.home)
        place.progress(f"building {task.id}", 0, 1)
        with place.store.scratch() as scratch:
            found = setups(place.store, below, base)
            made = self._made(image, list(tools(below, packages)), found, scratch)
            tar = scratch / "files.tar"
            layer_of(made.rest, task.workdir, tar, below.epoch)
            lock = write_image(place.store, place.home, task.id, recipe, below, base, tar)
        return Pinned(image=lock, repo=write_repo(place.store, place.home, task.id, made.tree))

    def _made(
        self, image: Image, answering: Sequence[Entry], found: Sequence[Setup], scratch: Path
    ) -> Made:
        place, task = self.place, self.task
        with tool_box(image, place.runtime, place.store, answering) as box:
            set_up(box, found, self.report, task.image_where)
            builder = Builder(box, task, self.report)
            builder.build()
            self._before(builder)
            builder.settle_repository()
            box.stop()
            box.snapshot(scratch / "made.tar")
        return read_made(scratch / "made.tar", task.workdir, self.report, task.image_where)

    def _before(self, builder: Builder) -> None:
        """What happens in a box before an agent is let in."""
        for chore in self.task.prelude:
            done = builder.do(chore)
            if done and done.exit_code != 0:
                self.report.refused(chore.name, failed(done), chore.where)
            builder.box.exec(["rm", "-rf", "/solution", "/oracle"], seconds=60, cwd="/")
        for entry in entrypoints(self.task.steps):
            self._enter(builder, entry.words, entry.where)
        if check := self.task.healthcheck:
            done = builder.run(check.command, {}, check.timeout_sec)
            where = str(self.task.folder / "task.toml")
            if done.exit_code != 0:
                note = (
                    f"`{check.command}` looks for what runs only when it is started: {failed(done)}"
                )
                self.report.refused("environment.healthcheck", note, where)
        self.report.require_none_refused()

    def _enter(self, builder: Builder, words: Sequence[str], where: str) -> None:
        """An entrypoint prepares a box and hands over; what it leaves running is not kept."""
        before = builder.box.stats().processes
        done = builder.run(f"{shlex.join(words)} true", {}, _ENTRY_SECONDS)
        if done.exit_code != 0:
            note = f"it does not hand over to the program that it is given: {failed(done)}"
            self.report.refused("ENTRYPOINT", note, where)
            return
        left = builder.box.stats().processes - before
        if left > 0:
            note = f"it leaves {left} programs running, which an agent's box would not have"
            self.report.refused("ENTRYPOINT", note, where)
        else:
            self.report.mapped("ENTRYPOINT", "run once, now; what it leaves is kept", where)

    def _judged(self, pinned: Pinned, packages: Packages) -> ImportRecord:
        bench = Bench(
            place=self.place,
            task=self.task,
            report=self.report,
            pinned=pinned,
            packages=packages,
        )
        return judged(bench)
