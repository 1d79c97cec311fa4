"""An image of ours as a Dockerfile, and as an archive that container engines load."""

import hashlib
import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sandbox.formats.digest import Entry, canonical
from sandbox.formats.home import locate
from sandbox.model.image import ImageLock
from sandbox.model.task import Digest, TaskSpec
from sandbox.runtime.repo.pins import read_files
from sandbox.runtime.spec import ENVIRONMENT, Image, ImageLayer, Seed
from sandbox.runtime.store import sha256_file
from sandbox.runtime.supplies import Supplies

_ARCHIVE = "http://deb.debian.org/debian"
_SNAPSHOT = "http://snapshot.debian.org/archive/debian"
_OURS = frozenset({"libfaketime"})
"""Of PyPI: what holds a clock, where we hold it."""


def image_name(prefix: str, task: TaskSpec) -> str:
    """By content: of the image and of what is in its working directory."""
    digest = task.image.digest.removeprefix("sha256:")[:12]
    return f"{prefix}{task.image.name}:{digest}-{task.repo.tree[:8]}"


def environment(task: TaskSpec, lock: ImageLock, supplies: Supplies) -> Iterator[Entry]:
    """What environment/ holds: a Dockerfile and what it copies."""
    tree = read_files(supplies.repo)
    text = _dockerfile(task, lock, copies=bool(tree))
    yield Entry("Dockerfile", "file", text.encode())
    for e in tree:
        yield Entry(f"repo/{e.path}", e.kind, e.data)
    for n, pin in enumerate(lock.layers):
        if pin.file:
            tar = locate(Path(task.home), f"repos/images/{pin.file}")
            yield Entry(f"files-{n}.tar", "file", tar.read_bytes())


def _dockerfile(task: TaskSpec, lock: ImageLock, *, copies: bool) -> str:
    debs = sorted({p.name for layer in lock.layers for p in layer.debs})
    wheels = {p.name: p.version for layer in lock.layers for p in layer.wheels}
    asked = [f"{name}=={version}" for name, version in sorted(wheels.items()) if name not in _OURS]
    source = f"{_SNAPSHOT}/{lock.snapshot}" if lock.snapshot else _ARCHIVE
    lines = [
        f"# Task {task.id} of Stillroom, {task.digest}.",
        "# The image that task.toml names is this one to the byte; what is built here has the same",
        "# packages, of the day on which they were pinned.",
        "FROM debian:bookworm-slim",
        f"ARG DEBIAN={source}",
        "RUN rm -f /etc/apt/sources.list.d/* \\",
        ' && echo "deb [check-valid-until=no] $DEBIAN bookworm main" > /etc/apt/sources.list',
        "RUN apt-get update \\",
        " && apt-get install -y --no-install-recommends python3-pip \\",
        *(f"    {name} \\" for name in debs),
        " && rm -rf /var/lib/apt/lists/*",
    ]
    if asked:
        lines += [
            "RUN rm -f /usr/lib/python3.11/EXTERNALLY-MANAGED",
            "RUN pip install --no-deps --no-cache-dir \\",
            " \\\n".join(f"    {one}" for one in asked),
        ]
    for layer in lock.layers:
        for path, target in (layer.links or {}).items():
            if "stillroom" not in path:
                lines.append(f"RUN ln -sfn {target} {path}")
    lines += [f"ADD files-{n}.tar /" for n, pin in enumerate(lock.layers) if pin.file]
    if any(pin.file for pin in lock.layers):
        lines.append("RUN [ ! -L /tests ] || rm /tests")
    lines += [f"ENV {k}={json.dumps(v)}" for k, v in sorted(lock.env.items()) if k != "PATH"]
    git = "git -c user.name=agent -c user.email=agent@localhost"
    lines += [
        f"WORKDIR {task.workdir}",
        *([f"COPY repo/ {task.workdir}/"] if copies else []),
        f"RUN git init -q && git add -A -f && {git} commit -q --allow-empty -m pinned",
    ]
    return "\n".join(lines) + "\n"


def _without_tests(image: Image, scratch: Path) -> Iterator[ImageLayer]:
    """Where a converted task's image has a link at /tests, as ours need: theirs have a folder."""
    if not any((layer.folder / "tests").is_symlink() for layer in image.layers):
        return
    tar = scratch / "without-tests.tar"
    with tarfile.open(tar, "w") as out:
        out.addfile(tarfile.TarInfo(".wh.tests"))
    yield ImageLayer(diff_id=Digest(f"sha256:{sha256_file(tar)}"), tar=tar, folder=scratch)


def write_archive(
    path: Path, name: str, image: Image, seed: Seed, workdir: str, scratch: Path
) -> None:
    """What `docker load` takes: the image, and the working directory as one more layer."""
    # Imported when it comes to that: the engine's library is slow to load.
    from sandbox.runtime.docker.images import docker_archive  # noqa: PLC0415

    top = ImageLayer(
        diff_id=Digest(f"sha256:{sha256_file(seed.tar)}"), tar=seed.tar, folder=seed.folder
    )
    layers = (*image.layers, *_without_tests(image, scratch), top)
    config: dict[str, Any] = json.loads(image.config.read_text(encoding="utf-8"))
    env = {**ENVIRONMENT, **image.env}
    config["config"] = {
        **config.get("config", {}),
        "Env": [f"{k}={v}" for k, v in sorted(env.items())],
        "WorkingDir": workdir,
        "Cmd": ["/bin/bash"],
    }
    config["rootfs"] = {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]}
    config.pop("history", None)
    raw = canonical(config)
    (scratch / "config.json").write_bytes(raw)
    digest = Digest(f"sha256:{hashlib.sha256(raw).hexdigest()}")
    whole = replace(image, digest=digest, config=scratch / "config.json", layers=layers)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as f:
        f.writelines(docker_archive(whole, name))
