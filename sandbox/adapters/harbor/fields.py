"""What becomes of each key of a task.toml: a row for every one that is said."""

from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.adapters.harbor.report import Fate, Report
from sandbox.formats.harbor import (
    VERSIONS,
    Agent,
    Collect,
    Environment,
    HarborTask,
    Verifier,
)

_OFFLINE = "none: neither the agent's box nor the verifier's reaches anything"
_PLAIN: Mapping[str, tuple[Fate, str]] = {
    "schema_version": ("mapped", "task.yaml's own schema"),
    "source": ("dropped", "where it was published before"),
    "multi_step_reward_strategy": ("changed", "each step is a task with a reward of its own"),
    "task.name": ("mapped", "id, and metadata.source"),
    "task.version": ("dropped", "a task is known by its digest"),
    "task.description": ("dropped", "the instruction says what it is"),
    "task.authors": ("dropped", "import.json names the source"),
    "task.keywords": ("mapped", "metadata.tags"),
    "agent.timeout_sec": ("mapped", "limits.wall_seconds"),
    "verifier.timeout_sec": ("mapped", "verifier.seconds"),
    "verifier.env": ("mapped", "the environment of the test script"),
    "environment.build_timeout_sec": ("mapped", "how long the build may take, now"),
    "environment.cpus": ("mapped", "limits.cpus"),
    "environment.memory_mb": ("mapped", "limits.memory_mib"),
    "environment.memory": ("mapped", "limits.memory_mib"),
    "environment.storage_mb": ("mapped", "limits.disk_mib"),
    "environment.storage": ("mapped", "limits.disk_mib"),
    "environment.env": ("mapped", "env"),
    "environment.workdir": ("mapped", "workdir"),
    "environment.docker_image": ("mapped", "image"),
    "environment.os": ("mapped", "linux"),
    "environment.healthcheck": ("mapped", "looked at now, once the box is made"),
    "environment.allow_internet": ("changed", _OFFLINE),
    "solution.env": ("mapped", "the environment of the solution, which is run now"),
    "artifacts": ("mapped", "submission.paths"),
}
_OF_METADATA = {
    "difficulty": "metadata.difficulty",
    "category": "metadata.category",
    "tags": "metadata.tags",
    "expert_time_estimate_min": "metadata.expert_minutes",
}


def tell_fields(task: HarborTask, report: Report) -> None:
    """Into the report."""
    report.mapped("instruction.md", "instruction.md", str(task.folder))
    if task.canaries:
        report.dropped("canary", "its lines are no part of what an agent is told", str(task.folder))
    data = task.given.data
    for name, loc in _said(data):
        if name in _PLAIN:
            fate, note = _PLAIN[name]
            getattr(report, fate)(name, note, task.given.where(loc))
    _version(task, report)
    for key in task.file.metadata:
        where = task.where("metadata", key)
        if key in _OF_METADATA:
            report.mapped(f"metadata.{key}", _OF_METADATA[key], where)
        else:
            report.dropped(f"metadata.{key}", "there is no such key here", where)
    _environment(task, task.file.environment, ("environment",), report)
    _agent(task, task.file.agent, ("agent",), report)
    _verifier(task, task.file.verifier, ("verifier",), report)
    _steps(task, report)
    _files(task, report)


def _version(task: HarborTask, report: Report) -> None:
    """Of the older name: many write there which version of their task it is."""
    said, where = task.file.version, task.where("version")
    if said in VERSIONS:
        report.mapped("version", "the older name of schema_version", where)
    elif said is not None:
        note = f"`{said}` is no schema of Harbor's: the keys are those of {VERSIONS[-1]}"
        report.changed("version", note, where)


def _said(data: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, value in data.items():
        if f"{key}" in _PLAIN:
            yield key, (key,)
        elif isinstance(value, dict) and key != "metadata":
            yield from ((f"{key}.{inner}", (key, inner)) for inner in value)


def _steps(task: HarborTask, report: Report) -> None:
    for i, step in enumerate(task.file.steps or ()):
        at = ("steps", i)
        note = f"a task of its own, which begins where the solution of step {i} ends"
        report.changed(f"steps.{step.name}", note, task.where(*at))
        if step.min_reward is not None:
            note = "no step waits for another's reward"
            report.dropped(f"steps.{step.name}.min_reward", note, task.where(*at, "min_reward"))
        if step.healthcheck is not None:
            note = "a check in the midst of the steps is not made"
            report.refused(f"steps.{step.name}.healthcheck", note, task.where(*at, "healthcheck"))
        _agent(task, step.agent, (*at, "agent"), report)
        _verifier(task, step.verifier, (*at, "verifier"), report)


def _environment(
    task: HarborTask, env: Environment, at: tuple[str | int, ...], report: Report
) -> None:
    name = ".".join(map(str, at))

    def where(key: str) -> str:
        return task.where(*at, key)

    if env.os != "linux":
        report.refused(f"{name}.os", f"boxes are of Linux, not of {env.os}", where("os"))
    if env.gpus:
        report.refused(f"{name}.gpus", "a box has no GPU", where("gpus"))
    elif env.gpus is not None:
        report.mapped(f"{name}.gpus", "none", where("gpus"))
    if env.gpu_types:
        report.refused(f"{name}.gpu_types", "a box has no GPU", where("gpu_types"))
    if env.tpu:
        report.refused(f"{name}.tpu", "a box has no TPU", where("tpu"))
    if env.mcp_servers:
        names = ", ".join(server.name for server in env.mcp_servers)
        note = f"an agent here has a terminal and no other tools: {names}"
        report.refused(f"{name}.mcp_servers", note, where("mcp_servers"))
    if env.skills_dir is not None:
        note = "an agent here is given the instruction, and no skills"
        report.refused(f"{name}.skills_dir", note, where("skills_dir"))
    _network(name, env, where("network_mode"), report)


def _agent(task: HarborTask, agent: Agent, at: tuple[str | int, ...], report: Report) -> None:
    name = ".".join(map(str, at))
    if agent.timeout_sec is None and at == ("agent",) and not task.file.steps:
        note = "it has none; limits.wall_seconds is 28800, eight hours"
        report.changed("agent.timeout_sec", note, task.where(*at))
    if agent.user not in (None, "root", 0, "0"):
        note = f"the agent is root in its box, not `{agent.user}`"
        report.changed(f"{name}.user", note, task.where(*at, "user"))
    _network(name, agent, task.where(*at, "network_mode"), report)


def _verifier(
    task: HarborTask, verifier: Verifier, at: tuple[str | int, ...], report: Report
) -> None:
    name = ".".join(map(str, at))
    mode = "separate" if verifier.separate else "shared"
    where = task.where(*at, "environment_mode")
    note = f"{mode} there; here a verdict is always made in a second, clean box"
    report.mapped(f"{name}.environment_mode", note, where)
    if verifier.user is not None:
        note = f"the checks are nobody's, not `{verifier.user}`'s"
        report.changed(f"{name}.user", note, task.where(*at, "user"))
    for i, collect in enumerate(verifier.collect):
        _collect(task, collect, (*at, "collect", i), report)
    if verifier.environment:
        _environment(task, verifier.environment, (*at, "environment"), report)
        note = "the verifier's box is as large as the agent's, and has the same image"
        report.changed(f"{name}.environment", note, task.where(*at, "environment"))
    _network(name, verifier, task.where(*at, "network_mode"), report)


def _collect(task: HarborTask, collect: Collect, at: tuple[str | int, ...], report: Report) -> None:
    note = f"nothing runs in the agent's box once it is over: {collect.command[:80]!r}"
    report.refused("verifier.collect", note, task.where(*at))


def _network(name: str, phase: Agent | Verifier | Environment, where: str, report: Report) -> None:
    if phase.allowed_hosts is not None:
        report.changed(f"{name}.allowed_hosts", _OFFLINE, where)
    if phase.network_mode == "no-network":
        report.mapped(f"{name}.network_mode", _OFFLINE, where)
    elif phase.network_mode is not None:
        report.changed(f"{name}.network_mode", _OFFLINE, where)
    elif name == "environment" and isinstance(phase, Environment) and phase.allow_internet is None:
        report.changed("environment.network_mode", f"public, unless said; {_OFFLINE}", where)


def _files(task: HarborTask, report: Report) -> None:
    known = {
        "task.toml", "instruction.md", "environment", "tests", "solution", "steps", "README.md",
        ".harborignore",
    }  # fmt: skip
    if (task.folder / "trajectory.json").exists():
        note = "work that came before: an agent here begins with the instruction"
        report.refused("trajectory.json", note, str(task.folder / "trajectory.json"))
    if (task.folder / "tests" / "test.bat").exists():
        report.dropped("tests/test.bat", "for Windows", str(task.folder / "tests"))
    if (task.folder / "README.md").exists():
        report.dropped("README.md", "for people", str(task.folder / "README.md"))
    if (task.folder / ".harborignore").exists():
        note = "all files of tests/ and solution/ are taken"
        report.dropped(".harborignore", note, str(task.folder / ".harborignore"))
    extra = sorted(p.name for p in task.folder.iterdir() if p.name not in known)
    extra = [name for name in extra if name != "trajectory.json"]
    if extra:
        report.dropped(", ".join(extra[:20]), "no part of the format", str(task.folder))
