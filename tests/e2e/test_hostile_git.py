"""What an agent makes of its git: none of it runs here, and its honest work counts all the same.

Each configuration would run `touch` on a path of this machine as soon as any git is used on the
agent's folder. A control shows that: the same folders, and the git of this machine.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sandbox.formats.digest import Entry
from sandbox.formats.taskfile import load_task
from sandbox.grading.apply import applied
from sandbox.grading.collect import collect
from sandbox.grading.judge import judge
from sandbox.grading.verify import verify
from sandbox.model.record import Submission
from sandbox.model.task import SubmissionSpec, TaskSpec
from sandbox.rollout import plugins
from sandbox.rollout.run import agent_box
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.locks import lock_task, new_task
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot, Supplies
from sandbox.runtime.tarball import read
from tests.support.absent import absent
from tests.support.gits import CLEAN

pytestmark = [pytest.mark.box, pytest.mark.network]
HONEST = "sed -i 's/split(\" \")/split()/' words.py && mkdir -p lib && echo x = 1 > lib/x.py"
HOOK = "printf '#!/bin/sh\\n{run}\\n' > {hook} && chmod +x {hook}"
PLANTS: dict[str, str] = {
    "core.fsmonitor": "git config core.fsmonitor '{run}; false'",
    "core.hooksPath": "mkdir -p lib/h && git config core.hooksPath lib/h && "
    + HOOK.replace("{hook}", "lib/h/post-index-change"),
    "post-checkout hook": "mkdir -p .git/hooks && " + HOOK.replace("{hook}", ".git/hooks/post-checkout"),
    "post-index-change hook": "mkdir -p .git/hooks && "
    + HOOK.replace("{hook}", ".git/hooks/post-index-change"),
    "pre-commit hook": "mkdir -p .git/hooks && " + HOOK.replace("{hook}", ".git/hooks/pre-commit"),
    "pre-applypatch hook": "mkdir -p .git/hooks && "
    + HOOK.replace("{hook}", ".git/hooks/pre-applypatch"),
    "diff.external": "git config diff.external '{run}; true'",
    "diff driver": "git config diff.x.command '{run}; true' && echo '* diff=x' > .gitattributes",
    "textconv": "git config diff.x.textconv '{run}; cat' && echo '* diff=x' > .gitattributes",
    "filter.clean": "git config filter.x.clean '{run}; cat' && echo '* filter=x' > lib/.gitattributes"
    " && echo '* filter=x' > .gitattributes",
    "filter.smudge": "git config filter.x.smudge '{run}; cat' && echo '* filter=x' > .gitattributes",
    "filter.process": "git config filter.x.process '{run}; true' && git config filter.x.required true"
    " && echo '* filter=x' > .gitattributes",
    "merge driver": "git config merge.x.driver '{run}; true' && echo '* merge=x' > .gitattributes",
    "core.pager": "git config core.pager '{run}; cat' && git config pager.diff true",
    "core.editor": "git config core.editor '{run}; true'",
    "core.sshCommand": "git config core.sshCommand '{run}; false' &&"
    " git config remote.origin.url ssh://a/b",
    "core.askPass": "git config core.askPass '{run}; true'",
    "core.gitProxy": "git config core.gitProxy '{run}; true'",
    "alias": "git config alias.status '!{run}' && git config alias.d '!{run}'",
    "include": "printf '[core]\\n\\tfsmonitor = {run}; false\\n' > lib/inc &&"
    " git config include.path ../lib/inc",
    "includeIf": "printf '[core]\\n\\tfsmonitor = {run}; false\\n' > .inc &&"
    " git config includeIf.gitdir:/.path ../.inc",
    "core.worktree": "git config core.worktree / && git config core.fsmonitor '{run}; false'",
    "worktree config": "git config extensions.worktreeConfig true &&"
    " printf '[core]\\n\\tfsmonitor = {run}; false\\n' > .git/config.worktree",
    "a gitdir file": "mv .git lib/g && echo 'gitdir: lib/g' > .git &&"
    " printf '[core]\\n\\tfsmonitor = {run}; false\\n' >> lib/g/config",
    "a gitdir file within": "git init -q lib/in && mv lib/in/.git lib/g &&"
    " echo 'gitdir: ../g' > lib/in/.git && echo y > lib/in/y",
    "a repository within": "git init -q lib/in && git -C lib/in config core.fsmonitor '{run}; false'"
    " && echo y > lib/in/y",
    "a bare repository within": "git init -q --bare lib/bare &&"
    " git -C lib/bare config core.fsmonitor '{run}; false'",
    "alternates": "mkdir -p .git/objects/info && echo /etc > .git/objects/info/alternates",
    "an alternates command": "git config core.alternateRefsCommand '{run}; true'",
    "a submodule": "git init -q lib/sub && git -C lib/sub -c user.name=a -c user.email=a@b commit -q"
    " --allow-empty -m x && git add lib/sub 2>/dev/null; printf"
    " '[submodule \"s\"]\\n\\tpath = lib/sub\\n\\turl = ext::{run}\\n\\tupdate = !{run}\\n' > .gitmodules"
    " && cp .gitmodules lib/",
    "protocol.ext": "git config protocol.ext.allow always && git config remote.origin.url 'ext::{run}'",
    "uploadpack": "git config remote.origin.uploadpack '{run}; true' &&"
    " git config uploadpack.packObjectsHook '{run}'",
    "gpg.program": "printf '#!/bin/sh\\n{run}\\n' > lib/gpg && chmod +x lib/gpg &&"
    " git config gpg.program ./lib/gpg && git config commit.gpgSign true",
    "credential.helper": "git config credential.helper '!{run}'",
    "interactive.diffFilter": "git config interactive.diffFilter '{run}; cat'",
    "sequence.editor": "git config sequence.editor '{run}; true'",
    "a link for .git": "mv .git lib/g && ln -s lib/g .git && git config core.fsmonitor '{run}; false'",
    "skip-worktree": "git update-index --skip-worktree words.py && git config core.fsmonitor '{run}; false'",
    "an index that lies": "git update-index --assume-unchanged words.py",
    "replaced objects": "git replace HEAD HEAD 2>/dev/null; git config core.useReplaceRefs true",
}  # fmt: skip
CONTROL = (
    "core.fsmonitor", "core.hooksPath", "post-checkout hook", "post-index-change hook",
    "pre-commit hook", "diff.external", "diff driver", "textconv", "filter.clean", "filter.smudge",
    "alias", "include", "worktree config", "a gitdir file", "gpg.program", "core.editor",
)  # fmt: skip
"""Some that need no remote and no terminal."""


@dataclass(frozen=True, slots=True)
class Bench:
    task: TaskSpec
    supplies: Supplies
    runtime: Runtime
    landed: Path
    """A folder of this machine in which nothing may appear."""

    def planted(self, *names: str) -> Box:
        """An agent's box, in which this was done, by commands; then the honest work."""
        box = self.runtime.create(agent_box(self.task, self.supplies))
        for name in names:
            run = f"touch {self.landed}/{name.replace(' ', '-')}"
            done = box.exec(
                ["bash", "-c", f"mkdir -p lib; {PLANTS[name]}".replace("{run}", run)], seconds=60
            )
            assert done.exit_code == 0, (name, done.stderr)
        done = box.exec(["bash", "-c", HONEST], seconds=60)
        assert done.exit_code == 0, done.stderr
        return box

    def submitted(self, *names: str) -> Submission:
        with self.planted(*names) as box:
            made = collect(box, self.task, self.supplies)
        assert made.rejected == ""
        return made


@pytest.fixture(scope="module")
def bench_of(
    store: Store, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Bench]]:
    home = tmp_path_factory.mktemp("home")
    depot = Depot(store, lambda *_: None)
    new_task(store, home, "git-1")
    lock_task(depot, load_task(home, "git-1"))
    task = load_task(home, "git-1")
    task = replace(task, submission=SubmissionSpec(paths=("words.py", "lib")))
    made: dict[str, Bench] = {}

    def opened(name: str) -> Bench:
        if name not in made:
            runtime = plugins.runtime(name, store)
            if why := runtime.capabilities().still:
                absent(why)
            landed = tmp_path_factory.mktemp("landed")
            made[name] = Bench(task, depot.supply(task), runtime, landed)
        return made[name]

    yield opened
    for bench in made.values():
        with closing(bench.runtime):
            continue


@pytest.fixture
def bench(bench_of: Callable[[str], Bench]) -> Bench:
    return bench_of("embedded")


@pytest.mark.parametrize("name", PLANTS)
def test_nothing_of_it_runs_here_and_the_honest_work_is_taken(bench: Bench, name: str):
    made = bench.submitted(name)
    found = applied(bench.task, bench.supplies.base, made.patch)
    files = {e.path: e for e in found.files}
    assert found.refused == ""
    assert b"split()" in files["words.py"].data
    assert files["lib/x.py"] == Entry("lib/x.py", "file", b"x = 1\n")
    assert not [path for path in files if ".git" in path]
    assert list(bench.landed.iterdir()) == []


def all_at_once(bench: Bench) -> None:
    names = [n for n in PLANTS if "gitdir" not in n and "link" not in n and "worktree" not in n]
    made = bench.submitted(*names)
    evidence = verify(bench.task, made, bench.runtime, bench.supplies)
    assert judge(bench.task.verifier, evidence, bench.supplies.layers).resolved, evidence
    assert {"lib/in/.git", "lib/.gitattributes", "lib/.gitmodules"} <= set(evidence.outside)
    assert list(bench.landed.iterdir()) == []


def test_all_of_it_at_once_is_graded_as_if_it_were_not_there(bench: Bench):
    all_at_once(bench)


@pytest.mark.docker
def test_all_of_it_at_once_is_graded_on_docker_as_well(bench_of: Callable[[str], Bench]):
    all_at_once(bench_of("docker"))


def test_the_same_folders_run_it_when_git_is_used_on_them(bench: Bench, tmp_path: Path):
    """Else what is shown above would be worth nothing."""
    for name in CONTROL:
        with bench.planted(name) as box:
            folder = unpacked(box, bench.task.workdir, tmp_path / name.replace(" ", "-"))
        use_git(folder)
    ran = {p.name for p in bench.landed.iterdir()}
    for path in bench.landed.iterdir():
        path.unlink()
    assert {name.replace(" ", "-") for name in CONTROL} == ran


def unpacked(box: Box, workdir: str, folder: Path) -> Path:
    for e in read(box.get(workdir), max_bytes=1 << 28, max_files=10_000):
        path = folder / e.path.partition("/")[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        if e.kind == "link":
            path.symlink_to(e.data.decode())
        else:
            path.write_bytes(e.data)
            path.chmod(0o755 if e.kind == "exec" else 0o644)
    return folder


def use_git(folder: Path) -> None:
    """What a harness does that trusts the agent's folder."""
    for command in (
        "git status", "git diff", "git d", "git add -A", "git commit -q -m x", "git commit --amend",
        "rm words.py && git checkout HEAD -- words.py", "git checkout -q -b other",
    ):  # fmt: skip
        subprocess.run(
            ["timeout", "10", "sh", "-c", command],
            cwd=folder, capture_output=True, check=False, stdin=subprocess.DEVNULL, env=CLEAN,
        )  # fmt: skip
