"""Our tasks as Harbor's: a folder that it and its readers take, by image or by Dockerfile."""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from sandbox.adapters.harbor.dockerfile import environment, image_name, write_archive
from sandbox.adapters.harbor.report import Row
from sandbox.adapters.harbor.tools import FOLDER
from sandbox.adapters.taskhome import write_entries
from sandbox.errors import UserError
from sandbox.formats import jsonfile
from sandbox.formats.digest import Entry
from sandbox.formats.home import locate
from sandbox.formats.patchparts import parts
from sandbox.grading.apply import Applied
from sandbox.grading.plan import Job, files_of
from sandbox.grading.setting import VARIABLES, setting
from sandbox.model.conditions import USUAL
from sandbox.model.image import ImageLock
from sandbox.model.task import TaskSpec
from sandbox.runtime.supplies import Depot, Supplies

ORG = "stillroom"
_THEIRS = "theirs-test.sh"
_RUNNERS = "/tests/runners"
_PATCH = "git apply --whitespace=nowarn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    task: str
    folder: str
    image: str
    """What `docker_image` names: it holds the working directory, too."""
    rows: tuple[Row, ...]
    """What could not be taken along as it is."""


def export_all(
    tasks: Iterable[TaskSpec],
    depot: Depot,
    out: Path,
    *,
    prefix: str,
    network: str,
    images: Path | None,
) -> Iterator[Exported]:
    """One after the other. images: a folder for archives of their images, each written once."""
    for task in tasks:
        path = locate(Path(task.home), f"repos/images/{task.image.name}.lock.json")
        lock = jsonfile.load(path, ImageLock)
        made = export_task(task, lock, depot, out, prefix=prefix, network=network)
        if images:
            archive = images / (made.image.replace("/", "_").replace(":", "_") + ".tar")
            if not archive.exists():
                supplies = depot.supply(task)
                image, seed = supplies.image, supplies.seed
                with depot.store.scratch() as scratch:
                    write_archive(archive, made.image, image, seed, task.workdir, scratch)
        yield made


def export_task(
    task: TaskSpec, lock: ImageLock, depot: Depot, out: Path, *, prefix: str, network: str
) -> Exported:
    """A new folder of the task's name in `out`. Raises UserError or a Fault.

    prefix: of the image's name. network: `no-network`, as it is here, or `public`.
    """
    folder = out / task.id
    if folder.exists():
        raise UserError(f"{folder} exists already", hint="choose another folder")
    if task.verifier.services:
        names = ", ".join(s.name for s in task.verifier.services)
        raise UserError(f"`{task.id}` has services, which Harbor starts in no verifier: {names}")
    supplies = depot.supply(task)
    image = image_name(prefix, task)
    folder.mkdir(parents=True)
    try:
        (folder / "instruction.md").write_text(task.instruction, encoding="utf-8")
        (folder / "task.toml").write_text(_toml(task, image, network), encoding="utf-8")
        write_entries(folder / "tests", _tests(task, supplies))
        write_entries(folder / "solution", _solution(task, depot.solution(task, supplies)))
        write_entries(folder / "environment", environment(task, lock, supplies))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Exported(task=task.id, folder=str(folder), image=image, rows=tuple(_rows(task, network)))


def _toml(task: TaskSpec, image: str, network: str) -> str:
    limits, told = task.limits, task.metadata
    metadata: dict[str, Any] = {
        "difficulty": told.difficulty,
        "category": told.category,
        "tags": list(told.tags),
        "licence": told.licence,
        "origin": told.source,
        "stillroom_digest": task.digest,
        "stillroom_clock": task.clock.at,
    }
    if told.expert_minutes is not None:
        metadata["expert_time_estimate_min"] = told.expert_minutes
    return "".join((
        'schema_version = "1.4"\n',
        _table("task", {"name": f"{ORG}/{task.id}", "description": told.source}),
        _table("metadata", metadata),
        _table("agent", {"timeout_sec": limits.wall_seconds}),
        _table("verifier", {"timeout_sec": task.verifier.seconds + 60.0, "env": {}}),
        _table("environment", {
            "docker_image": image,
            "build_timeout_sec": 1800.0,
            "cpus": limits.cpus,
            "memory_mb": limits.memory_mib,
            "storage_mb": limits.disk_mib,
            "workdir": task.workdir,
            "network_mode": network,
            "env": dict(task.env),
        }),
    ))  # fmt: skip


def _table(name: str, values: Mapping[str, Any]) -> str:
    plain = {k: v for k, v in values.items() if not isinstance(v, dict)}
    inner = {k: v for k, v in values.items() if isinstance(v, dict) and v}
    lines = [f"\n[{name}]\n", *(f"{k} = {json.dumps(v)}\n" for k, v in plain.items())]
    return "".join(lines) + "".join(_table(f"{name}.{k}", _quoted(v)) for k, v in inner.items())


def _quoted(values: Mapping[str, str]) -> dict[str, str]:
    return {json.dumps(k): v for k, v in values.items()}


def _tests(task: TaskSpec, supplies: Supplies) -> Iterator[Entry]:
    converted = any(e.path == f"{FOLDER}/plan.json" for e in supplies.tests)
    yield from _theirs(supplies.tests) if converted else _ours(task, supplies)


def _theirs(tests: Iterable[Entry]) -> Iterator[Entry]:
    """Of a converted task: its tests lie at /tests, as they did, and beside them what runs them."""
    text = f"#!/bin/bash\nexport STILLROOM_WRITE=1\nexec /tests/{FOLDER}/grade\n"
    yield Entry("test.sh", "exec", text.encode())
    for e in tests:
        path = e.path.removeprefix(f"{FOLDER}/tests/")
        if e.path == f"{FOLDER}/plan.json":
            yield Entry(e.path, e.kind, _moved(e.data))
        else:
            yield Entry(_THEIRS if path == "test.sh" else path, e.kind, e.data)


def _ours(task: TaskSpec, supplies: Supplies) -> Iterator[Entry]:
    inside = files("sandbox.adapters.harbor") / "inside"
    yield Entry("test.sh", "exec", b"#!/bin/bash\nexec python3 -IBS /tests/reward.py\n")
    yield Entry("reward.py", "file", (inside / "reward.py").read_bytes())
    job = Job(
        task=task,
        plan=setting(task, supplies, USUAL),
        made=Applied(),
        tests=supplies.tests,
        runner=f"run_{task.verifier.runner}",
    )
    for e in files_of(job, supplies, _RUNNERS, raw=False):
        yield Entry(f"runners/{e.path}", e.kind, e.data)
    for e in supplies.tests:
        yield Entry(f"bundle/{e.path}", e.kind, e.data)
    yield Entry("export.json", "file", (json.dumps(_given(task), indent=1) + "\n").encode())


def _moved(plan: bytes) -> bytes:
    told = json.loads(plan)
    if told["script"] == "/tests/test.sh":
        told["script"] = f"/tests/{_THEIRS}"
    return (json.dumps(told, indent=1) + "\n").encode()


def _given(task: TaskSpec) -> dict[str, Any]:
    """What reward.py is told."""
    spec = task.verifier
    return {
        "workdir": task.workdir,
        "bundle": list(spec.bundle.paths),
        "runner": f"run_{spec.runner}.py",
        "variables": dict(VARIABLES),
        "checks": [asdict(check) for check in spec.checks],
    }


def _solution(task: TaskSpec, patch: bytes) -> Iterator[Entry]:
    inner, rooted = parts(patch)
    lines = ["#!/bin/bash", "set -e"]
    if inner:
        yield Entry("inner.patch", "file", inner)
        lines += [f'cd "{task.workdir}"', f"{_PATCH} /solution/inner.patch"]
    if rooted:
        yield Entry("rooted.patch", "file", rooted)
        lines += ["cd /", f"{_PATCH} -p2 /solution/rooted.patch"]
    yield Entry("solve.sh", "exec", ("\n".join(lines) + "\n").encode())


def _rows(task: TaskSpec, network: str) -> Iterator[Row]:
    def row(name: str, note: str) -> Row:
        return Row(field=name, fate="dropped", note=note)

    yield row("clock", f"its boxes stand at {task.clock.at}; Harbor has the machine's clock")
    yield row(
        "verifier", "it is judged in the box of the agent, where the work can lie about itself"
    )
    if task.verifier.layers:
        yield row("verifier.layers", "nothing but the tests is looked at")
    if task.network.mode != "none":
        yield row("network", "what was recorded of the network is not there")
    if network != "no-network":
        yield row("network", f"{network}, as was asked for")
    if task.submission.paths != (".",):
        yield row("submission.paths", "all that the agent changes counts")
