"""A spec as the engine's API takes it."""

import posixpath
import secrets
from typing import Any

from docker.types import LogConfig, Mount, Ulimit

from sandbox.errors import RuntimeFault
from sandbox.model.task import Limits
from sandbox.runtime.docker import still
from sandbox.runtime.docker.engine import Allowed, Engine, faults
from sandbox.runtime.docker.main import command
from sandbox.runtime.spec import BoxSpec

ROOT = "0:0"
CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETGID",
    "SETUID",
    "SYS_CHROOT",
)
SHM_BYTES = 64 << 20
MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
    "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
    "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
    "/proc/config.gz", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags",
    "/proc/slabinfo", "/proc/sys/fs/dentry-state", "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state", "/proc/vmallocinfo", "/sys/kernel/security",
)  # fmt: skip
"""Those of the engine's newest version, then those that it leaves readable: root in a container is
the host's root to them."""
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def create(
    engine: Engine,
    spec: BoxSpec,
    *,
    image: str,
    labels: dict[str, str],
    seccomp: str,
    allowed: Allowed,
    held: still.Held | None = None,
) -> str:
    """The id of a new container: its first process is ours, root whoever programs run as."""
    first = command(spec.umask)
    with faults("create a box"):
        answer = engine.api.create_container(
            image,
            name=f"stillroom-{secrets.token_hex(6)}",
            entrypoint=held.first(first) if held else first,
            command=[],
            user=ROOT,
            hostname=spec.hostname,
            stdin_open=True,
            detach=False,  # once attached, its input ends with us: it ends with whoever made it
            working_dir=spec.workdir,
            environment=environment(spec),
            labels={**spec.labels, **labels},
            healthcheck={"test": ["NONE"]},
            host_config=host_config(engine, spec, seccomp, allowed, held),
        )
    return str(answer["Id"])


def host_config(
    engine: Engine, spec: BoxSpec, seccomp: str, allowed: Allowed, held: still.Held | None
) -> Any:
    memory = spec.limits.memory_mib << 20
    mounts = [
        Mount(mount.target, str(mount.source), type="bind", read_only=True) for mount in spec.mounts
    ]
    found = engine.api.create_host_config(
        network_mode="none",
        dns=["127.0.0.1"],  # the host's resolvers are none of the box's business
        dns_search=["."],
        cap_drop=["ALL"],
        cap_add=[*CAPABILITIES, *(still.CAPABILITIES if held else ())],
        security_opt=["no-new-privileges", f"seccomp={seccomp}"],
        mem_limit=memory,
        memswap_limit=memory,
        pids_limit=spec.limits.pids + (still.TASKS if held else 0),
        nano_cpus=round(spec.limits.cpus * 1e9),
        cpuset_cpus=held.cpuset if held else None,
        ulimits=ulimits(spec.limits, allowed),
        shm_size=SHM_BYTES,
        ipc_mode="private",
        cgroupns="private",
        log_config=LogConfig(type="none"),
        mounts=[*mounts, *(held.mounts() if held else ())],
        tmpfs={path: f"size={mib}m,mode=1777,exec" for path, mib in spec.tmpfs.items()},
    )
    # Nothing can be added to the engine's own lists: they are taken whole or not at all.
    return {**found, "MaskedPaths": list(MASKED), "ReadonlyPaths": list(READ_ONLY)}


def ulimits(limits: Limits, allowed: Allowed) -> list[Ulimit]:
    found = [("fsize", limits.file_mib << 20), ("core", 0)]
    if allowed.files != 0:
        found.append(("nofile", min(limits.open_files, allowed.files or limits.open_files)))
    if allowed.processes is not None:
        found.append(("nproc", allowed.processes))
    return [Ulimit(name=name, soft=value, hard=value) for name, value in found]


def environment(spec: BoxSpec) -> list[str]:
    """As it is, and no more: a bare name takes away what the engine would add."""
    given = spec.environment
    added = [name for name in ("HOSTNAME", "TERM") if name not in given]
    return [f"{name}={value}" for name, value in given.items()] + added


def check(spec: BoxSpec) -> None:
    """Raises RuntimeFault for what no engine holds."""
    if spec.limits.disk != "watch":
        raise RuntimeFault(
            f"the docker runtime cannot hold `limits.disk: {spec.limits.disk}`, only `watch`",
            hint="take `limits.disk: watch`, or the embedded runtime",
            retry=False,
        )
    user_of(spec.user)
    for mount in spec.mounts:
        if not mount.source.exists():
            raise RuntimeFault(f"there is no {mount.source} to mount in the box", retry=False)


def user_of(user: str) -> tuple[int, int]:
    uid, colon, gid = user.partition(":")
    if not (uid.isdigit() and (gid.isdigit() or not colon)):
        raise RuntimeFault(f"user `{user}` is not uid:gid, in numbers", retry=False)
    return int(uid), int(gid or uid)


ENGINE_FILES = frozenset({"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv"})
"""The engine's own, mounted over the image's: they cannot be replaced, only written to."""


def made_paths(spec: BoxSpec) -> frozenset[str]:
    """What the engine makes for us: what is mounted, and the way to it."""
    paths = [
        *ENGINE_FILES,
        "/etc/mtab",
        spec.workdir,
        *spec.tmpfs,
        *(mount.target for mount in spec.mounts),
        *(still.TARGETS if spec.still else ()),
    ]
    return frozenset(above for path in paths for above in _way(posixpath.normpath(path)))


def _way(path: str) -> list[str]:
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:n]) for n in range(1, len(parts) + 1)]
