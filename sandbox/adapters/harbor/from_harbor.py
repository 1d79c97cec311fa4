"""Harbor's tasks, understood. One of several steps becomes a task for each of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from sandbox.adapters.harbor import common
from sandbox.adapters.harbor.compose import Service, read_service
from sandbox.adapters.harbor.fields import tell_fields
from sandbox.adapters.harbor.foreign import Chore, Foreign, Limited, Told
from sandbox.adapters.harbor.report import Report
from sandbox.formats.dockersteps import Step as DockerStep
from sandbox.formats.harbor import (
    Agent,
    Artifact,
    Environment,
    HarborTask,
    Step,
    Verifier,
    mib_of,
    read_instruction,
)
from sandbox.formats.yamlfile import open_document

SCRIPT = "/tests/test.sh"
ARTIFACTS = "/logs/artifacts"
_LONGEST_SECONDS = 28800.0
_COMPOSES = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml")
_MAIN = "main"
"""The agent's container."""
_OWN = (
    "CONTEXT_DIR", "MAIN_IMAGE_NAME", "PREBUILT_IMAGE_NAME", "CPUS", "MEMORY", "TEST_DIR",
    *(f"{at}_{of}_PATH" for at in ("HOST", "ENV") for of in ("VERIFIER_LOGS", "AGENT_LOGS", "ARTIFACTS")),
)  # fmt: skip
"""Variables that Harbor sets."""


def understood(task: HarborTask, report: Report) -> list[Foreign]:
    """What is refused is in the report."""
    tell_fields(task, report)
    world = _World(task, report)
    if not task.file.steps:
        return [world.whole()]
    return [world.step(n, step) for n, step in enumerate(task.file.steps)]


class _World:
    """What the steps of one task share."""

    def __init__(self, task: HarborTask, report: Report) -> None:
        self.task = task
        self.report = report
        self.env: Environment = task.file.environment
        self.context = task.folder / "environment"
        self.image, self.image_where = self.env.docker_image or "", task.where("environment")
        self.steps: tuple[DockerStep, ...] = ()
        self.service = self._service()
        self.image = self.image or self.service.image or ""
        self._build()
        self.workdir = (
            self.env.workdir
            or self.service.workdir
            or common.workdir_of(self.steps, self.report, self.image_where)
        )

    def _build(self) -> None:
        dockerfile = self.context / self.service.dockerfile
        if dockerfile.is_file():
            first, self.steps = common.read_dockerfile(dockerfile, self.report)
            if first:
                self.image, self.image_where = first.image, first.where
            if self.env.docker_image:
                note = f"built from environment/Dockerfile instead: {self.env.docker_image}"
                self.report.changed("environment.docker_image", note, self.image_where)
        elif not self.image:
            self.report.refused("environment", "there is no Dockerfile", str(self.context))

    def _service(self) -> Service:
        """What a compose file says of the one container that there is."""
        found = [p for name in _COMPOSES if (p := self.context / name).is_file()]
        if not found:
            return Service()
        doc = open_document(found[0])
        service = read_service(doc, _MAIN, dict.fromkeys(_OWN, ""), self.report, needed=False)
        if service.command:
            note = f"`{service.command}` would go on in the box"
            where = doc.where(("services", _MAIN, "command"))
            self.report.refused(f"compose.services.{_MAIN}.command", note, where)
        if service.context != ".":
            note = f"another folder than environment/: {service.context}"
            where = doc.where(("services", _MAIN, "build"))
            self.report.refused(f"compose.services.{_MAIN}.build", note, where)
        return service

    def whole(self) -> Foreign:
        task = self.task
        return self._foreign(
            name=task.name,
            instruction=task.instruction,
            agent=task.file.agent,
            verifier=task.file.verifier,
            tests=((task.folder / "tests", "."),),
            solution=self._solution(task.folder / "solution"),
            artifacts=task.file.artifacts,
        )

    def step(self, n: int, step: Step) -> Foreign:
        task = self.task
        folder = task.folder / "steps" / step.name
        told, _ = read_instruction(folder / "instruction.md")
        tests = tuple(
            (place, ".") for place in (task.folder / "tests", folder / "tests") if place.is_dir()
        )
        return self._foreign(
            name=f"{task.name}.{n + 1}-{step.name}",
            instruction=told,
            agent=step.agent,
            verifier=step.verifier,
            tests=tests,
            solution=self._solution_of(step),
            artifacts=(*task.file.artifacts, *step.artifacts),
            prelude=tuple(self._before(n)),
        )

    def _before(self, n: int) -> Iterator[Chore]:
        """Of step n: what the steps before it left, as their solutions leave it."""
        steps = self.task.file.steps or ()
        for i, step in enumerate(steps[: n + 1]):
            folder = self.task.folder / "steps" / step.name / "workdir"
            if folder.is_dir():
                setup = f"bash {self.workdir}/setup.sh" if (folder / "setup.sh").is_file() else ""
                yield Chore(
                    name=f"steps/{step.name}/workdir",
                    where=str(folder),
                    files=((folder, self.workdir),),
                    script=setup,
                    seconds=self.env.build_timeout_sec,
                )
            if i < n and (solution := self._solution_of(step)):
                yield solution

    def _solution_of(self, step: Step) -> Chore | None:
        own = self.task.folder / "steps" / step.name / "solution"
        return self._solution(own if own.is_dir() else self.task.folder / "solution")

    def _solution(self, folder: Path) -> Chore | None:
        if not (folder / "solve.sh").is_file():
            note = "there is none: an empty one is written"
            self.report.changed("solution", note, str(folder))
            return None
        where = self.task.where("solution", "env")
        env = common.from_host(self.task.file.solution.env, "solution.env", self.report, where)
        note = "solution/solution.patch: what it leaves behind"
        self.report.mapped("solution/solve.sh", note, str(folder / "solve.sh"))
        return Chore(
            name="solution/solve.sh",
            where=str(folder / "solve.sh"),
            files=((folder, "/solution"),),
            script="bash /solution/solve.sh",
            env=env,
            seconds=min(self.task.file.agent.timeout_sec or 3600.0, 3600.0),
        )

    def _foreign(
        self,
        *,
        name: str,
        instruction: str,
        agent: Agent,
        verifier: Verifier,
        tests: tuple[tuple[Path, str], ...],
        solution: Chore | None,
        artifacts: tuple[str | Artifact, ...],
        prelude: tuple[Chore, ...] = (),
    ) -> Foreign:
        task, report, env = self.task, self.report, self.env
        folders = [folder for folder, _ in tests]
        if not any((folder / "test.sh").is_file() for folder in folders):
            report.refused("tests", "there is no test.sh", str(task.folder))
        paths, exclude = self._submission(verifier, artifacts, folders, solution)
        where = task.where("environment", "env")
        return Foreign(
            id=common.task_id(name),
            format="harbor",
            folder=task.folder,
            instruction=instruction,
            image=self.image,
            image_where=self.image_where,
            steps=self.steps,
            context=self.context,
            workdir=self.workdir,
            env=common.env_of(self.steps)
            | self.service.env
            | common.from_host(env.env, "environment.env", report, where),
            build_seconds=env.build_timeout_sec,
            prelude=prelude,
            healthcheck=env.healthcheck,
            tests=tests,
            script=SCRIPT,
            scripts=_scripts(folders),
            packages=tuple(
                folder / "Dockerfile"
                for folder in folders
                if verifier.separate and (folder / "Dockerfile").is_file()
            ),
            protocol="harbor",
            verifier_env=common.from_host(
                verifier.env, "verifier.env", report, task.where("verifier", "env")
            ),
            verifier_seconds=common.limit_seconds(
                verifier.timeout_sec, "verifier.timeout_sec", report, task.where("verifier")
            ),
            solution=solution,
            submission=paths,
            exclude=exclude,
            limits=self._limits(agent),
            told=self._told(),
        )

    def _limits(self, agent: Agent) -> Limited:
        env = self.env
        said = env.memory or self.service.memory
        memory = env.memory_mb or (mib_of(said) if said else None)
        disk = env.storage_mb or (mib_of(env.storage) if env.storage else None)
        return Limited(
            wall_seconds=min(agent.timeout_sec or _LONGEST_SECONDS, common.LONGEST_SECONDS),
            cpus=env.cpus or self.service.cpus,
            memory_mib=int(memory) if memory else None,
            disk_mib=int(disk) if disk else None,
        )

    def _told(self) -> Told:
        task = self.task
        said = task.file.metadata
        expert = said.get("expert_time_estimate_min")
        tags = said.get("tags", ())
        listed = tuple(str(t) for t in tags) if isinstance(tags, list) else ()
        more = task.file.task.keywords if task.file.task else ()
        return Told(
            difficulty=common.difficulty_of(said.get("difficulty")),
            category=str(said.get("category", "terminal")),
            source=f"Harbor: {task.file.task.name if task.file.task else task.name}",
            tags=tuple(dict.fromkeys((*listed, *more))),
            expert_minutes=int(expert) if isinstance(expert, int | float) else None,
        )

    def _submission(
        self,
        verifier: Verifier,
        artifacts: tuple[str | Artifact, ...],
        folders: list[Path],
        solution: Chore | None,
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The declared paths, and what of them is left out."""
        items = [Artifact(source=a) if isinstance(a, str) else a for a in artifacts]
        for item in items:
            self._tell_artifact(item)
        found = [p for item in items if (p := self._relative(item.source))]
        exclude = tuple(dict.fromkeys(e for item in items for e in item.exclude))
        if any(_mentions(folder, ARTIFACTS) for folder in folders) or (
            solution and any(_mentions(folder, ARTIFACTS) for folder, _ in solution.files)
        ):
            found.append(ARTIFACTS)
        if not verifier.separate:
            return tuple(dict.fromkeys((".", *found))), ()
        if not found:
            note = "nothing is declared, so it would see nothing of the work: all of it is taken"
            self.report.changed("artifacts", note, self.task.where("artifacts"))
            return (".",), exclude
        return _without_inner(found), exclude

    def _relative(self, source: str) -> str:
        top = PurePosixPath(self.workdir)
        path = top / source
        if path.is_relative_to(top):
            return str(path.relative_to(top))
        if top.is_relative_to(path):
            note = f"`{source}` is more than the working directory {self.workdir}"
            self.report.refused("artifacts", note, self.task.where("artifacts"))
            return ""
        return str(path)

    def _tell_artifact(self, item: Artifact) -> None:
        where = self.task.where("artifacts")
        if item.service not in (None, "main"):
            note = f"`{item.source}` is of another container, `{item.service}`"
            self.report.refused("artifacts", note, where)
        if item.destination is not None:
            self.report.dropped("artifacts.destination", "work is kept as a patch", where)
        self.report.mapped("artifacts", f"submission.paths: {item.source}", where)


def _scripts(folders: Sequence[Path]) -> tuple[Path, ...]:
    """What runs beside test.sh, each once."""
    found = ((*_named(f / "test.sh"), *common.scripts_in(f)) for f in folders)
    return tuple(dict.fromkeys(path for paths in found for path in paths))


def _named(path: Path) -> tuple[Path, ...]:
    return (path,) if path.is_file() else ()


def _without_inner(paths: list[str]) -> tuple[str, ...]:
    if "." in paths:
        paths = [p for p in paths if p == "." or p.startswith("/")]
    return tuple(
        dict.fromkeys(p for p in paths if not any(p != q and p.startswith(f"{q}/") for q in paths))
    )


def _mentions(place: Path, text: str) -> bool:
    files = place.rglob("*") if place.is_dir() else [place]
    return any(p.is_file() and text.encode() in p.read_bytes() for p in files)
