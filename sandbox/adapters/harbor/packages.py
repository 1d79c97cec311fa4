"""What a converted task's image has to have: what its Dockerfile installs, and what its scripts would."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from sandbox.adapters.harbor.bases import base_of
from sandbox.adapters.harbor.foreign import Foreign
from sandbox.adapters.harbor.report import Report
from sandbox.errors import SpecError
from sandbox.formats.dockersteps import Copy, Env, Passed, Run, Step, Workdir, load_steps
from sandbox.formats.harbor_wants import INSTALLERS, Read, Want, package_of, wants
from sandbox.formats.shellwords import simple_commands, with_values
from sandbox.formats.yamlfile import read_text
from sandbox.model.image import ImageLock

TOOLS = frozenset({"uv", "uvx", "pip", "virtualenv", "pipx"})
"""Of PyPI: answered in their stead."""
ANSWERED_DEBS = frozenset({
    "apt", "apt-utils", "asciinema", "pipx", "python-is-python3", "python3-full", "python3-pip",
    "python3-venv", "python3-virtualenv", "software-properties-common", "apt-transport-https",
    "python3.11-venv",
})  # fmt: skip
"""What installs more, and is answered in its stead; and what records a terminal, as we do."""
_BESIDE = {"gcc": "libc6-dev", "golang-go": "gcc", "tcc": "libc6-dev"}
"""What Debian only recommends, and nobody who asks for the one is without."""
_NATIVE = ("libstdc++6", "libgomp1")
"""What compiled wheels are linked with, and every image of theirs has."""
_USERS = ("useradd", "groupadd", "usermod", "adduser", "addgroup", "chpasswd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    base: str
    debs: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    """Requirements that are met by another version than they ask for."""
    answered: tuple[str, ...] = ()
    """Packages of Debian that a script installs only to fetch what is answered in its stead."""


@dataclass(slots=True)
class _Gathering:
    report: Report
    have: dict[str, str]
    """Of the base: package of PyPI → version."""
    there: frozenset[str]
    """Of the base: packages of Debian."""
    debs: list[str] = field(default_factory=list)
    wheels: dict[str, str] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    fetchers: frozenset[str] = frozenset()
    """What nobody fetches anything else with."""

    def take(self, found: Iterable[Want], stage: str) -> None:
        for want in found:
            match want.kind:
                case "apt":
                    self._deb(want, stage)
                case "pip":
                    self._wheel(want, stage)
                case _ if stage == "solution":
                    note = f"it reaches for the network: {want.what[:120]}"
                    self.report.changed("solve-time network", note, want.where)
                case _:
                    note = f"not to be had offline: {want.what[:120]}"
                    self.report.refused(f"{stage}-time network", note, want.where)

    def _deb(self, want: Want, stage: str) -> None:
        if want.what in ANSWERED_DEBS or want.what in self.there:
            return
        if stage != "build" and want.what in self.fetchers:
            note = f"`{want.what}` would fetch an installer, which is answered in its stead"
            self.report.changed(f"{stage}-time apt", note, want.where)
            return
        if want.what not in self.debs:
            known = (*self.debs, *self.there)
            self.debs += [name for name in _with_beside(want.what) if name not in known]
            if stage != "build":
                note = f"the image has `{want.what}`, so that {stage} needs no network"
                self.report.changed(f"{stage}-time apt", note, want.where)

    def _wheel(self, want: Want, stage: str) -> None:
        name = package_of(want.what)
        if name in TOOLS:
            self.answers.append(want.what)
            if stage == "build" and name not in self.have:
                note = f"the agent's box has no `{name}`: it is answered while the task is made"
                self.report.changed(f"{stage}-time pip", f"{note}, and graded", want.where)
            return
        version = self.have.get(name)
        if version is not None:
            exact = want.what.partition("==")[2].partition(";")[0].strip()
            if exact and exact != version:
                self.answers.append(want.what)
                note = f"asked is {want.what}, the image has {version}"
                self.report.changed(f"{stage}-time pip", note, want.where)
            return
        known = self.wheels.get(name)
        if known is None or (known == name and want.what != name):
            self.wheels[name] = want.what
            if stage != "build":
                note = f"the image has `{want.what}`, so that {stage} needs no network"
                self.report.changed(f"{stage}-time pip", note, want.where)
        elif want.what not in (known, name):
            self.answers.append(want.what)
            note = f"asked is {want.what}, the image has {known}"
            self.report.changed(f"{stage}-time pip", note, want.where)


def packages_of(task: Foreign, table: dict[str, str], base: ImageLock, report: Report) -> Packages:
    """table: name of an image → one of repos/images. What cannot be had is refused in the report."""
    found = base_of(task.image, table)
    if found is None:
        return Packages(base=base.name)
    gathering = _Gathering(
        report,
        have={p.name: p.version for layer in base.layers for p in layer.wheels},
        there=frozenset(p.name for layer in base.layers for p in layer.debs),
    )
    for name in found.debs:
        if name not in gathering.there:
            gathering.debs.append(name)
    gathering.fetchers = frozenset(_idle_fetchers(task.scripts))
    gathering.take(_of_steps(task.steps, task.context), "build")
    for path in task.packages:
        gathering.take(_of_tests_image(path, report), "grading")
    roots = [folder for folder, _ in task.tests]
    for path in task.scripts:
        gathering.take(_of_script(path, roots), "grading")
    for chore in (*task.prelude, *((task.solution,) if task.solution else ())):
        for place, _ in chore.files:
            for path in [place] if place.is_file() else sorted(place.rglob("*.sh")):
                gathering.take(_of_script(path, [place, task.context]), "solution")
        gathering.take(wants(chore.script, chore.where), "solution")
    if any(not name.startswith("pytest") for name in gathering.wheels):
        gathering.debs += [n for n in _NATIVE if n not in (*gathering.there, *gathering.debs)]
    return Packages(
        base=base.name,
        debs=tuple(gathering.debs),
        wheels=tuple(gathering.wheels.values()),
        answers=tuple(dict.fromkeys(gathering.answers)),
        answered=tuple(sorted(gathering.fetchers)),
    )


def _idle_fetchers(scripts: Iterable[Path]) -> Iterator[str]:
    """Of curl and wget, those that scripts use for installers alone."""
    texts = [p.read_text("utf-8", "replace") for p in scripts]
    calls = [c for text in texts for c in simple_commands(text)]
    for name in ("curl", "wget"):
        mine = [c for c in calls if c.words[0].rpartition("/")[2] == name]
        if all(any(INSTALLERS.match(w) for w in c.words) for c in mine):
            yield name
            if name == "curl":
                yield "ca-certificates"


def _of_steps(steps: Iterable[Step], context: Path) -> Iterator[Want]:
    for step in steps:
        if isinstance(step, Run):
            script = with_values(step.script, step.known)
            for want in wants(script, "", read=_reader([context])):
                yield Want(want.kind, want.what, step.where)
            if any(word in step.script for word in _USERS):
                name = "adduser" if "adduser" in step.script else "passwd"
                yield Want("apt", name, step.where)


def _of_tests_image(path: Path, report: Report) -> Iterator[Want]:
    """Of a verifier's own image: what it installs. The tests lie at /tests anyway."""
    try:
        steps = load_steps(path)
    except SpecError as e:
        report.refused("tests/Dockerfile", str(e).removeprefix(f"{e.where}: "), e.where)
        return
    yield from _of_steps(steps, path.parent)
    at = "/"
    for step in steps[1:]:
        match step:
            case Workdir():
                at = step.path if step.path.startswith("/") else f"{at.rstrip('/')}/{step.path}"
            case Copy() if not _to_tests(step.target, at):
                note = f"the verifier's image has `{step.target}`, beside /tests"
                report.refused("tests/Dockerfile", note, step.where)
            case Run() if not _installs_only(step.script):
                note = "what it runs is run in no image here, but for installers"
                report.changed("tests/Dockerfile", note, step.where)
            case Env():
                note = f"set in verifier.env instead: {', '.join(step.values)}"
                report.refused("tests/Dockerfile", note, step.where)
            case Copy() | Run() | Passed() | _:
                pass
    report.changed("tests/Dockerfile", "its packages are in the one image, too", str(path))


def _to_tests(target: str, workdir: str) -> bool:
    whole = target if target.startswith("/") else f"{workdir.rstrip('/')}/{target}"
    return (whole.rstrip("/.") + "/").startswith("/tests/")


def _installs_only(script: str) -> bool:
    words = ("apt-get", "pip", "uv ", "rm -rf /var/lib/apt", "curl -LsSf https://astral.sh")
    parts = [p.strip() for p in script.replace("&&", "\n").replace(";", "\n").splitlines()]
    return all(not p or any(w in p for w in words) for p in parts)


def _of_script(path: Path, roots: list[Path]) -> Iterator[Want]:
    try:
        text = read_text(path)
    except SpecError:
        return  # no text: a program, which asks when it runs
    yield from wants(text, str(path), read=_reader([path.parent, *roots]))


def _with_beside(name: str) -> Iterator[str]:
    """Also what stands beside that."""
    yield name
    if beside := _BESIDE.get(name):
        yield from _with_beside(beside)


def _reader(folders: list[Path]) -> Read:
    """Of several files of that name, the one whose folders are called most alike."""

    def read(name: str) -> str | None:
        asked = [p for p in name.split("/") if p not in ("", ".", "..") and "$" not in p]
        if not asked or "$" in name.rpartition("/")[2]:
            return None
        for folder in folders:
            top = folder if folder.is_dir() else folder.parent
            found = [p for p in sorted(top.rglob(asked[-1])) if p.is_file()]
            if found:
                return read_text(max(found, key=lambda p: (_alike(p, asked), -len(p.parts))))
        return None

    return read


def _alike(path: Path, asked: list[str]) -> int:
    pairs = zip(reversed(path.parts), reversed(asked), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
