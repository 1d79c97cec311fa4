"""A small image of this machine's own bash, coreutils and python3: no download, no build."""

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

from sandbox.model.task import Digest
from sandbox.runtime.spec import Image, ImageLayer
from sandbox.runtime.store import Store, remove_tree, sha256_file

PROGRAMS = [
    "base64",
    "basename",
    "bash",
    "cat",
    "chmod",
    "clear",
    "cp",
    "cut",
    "dd",
    "dirname",
    "echo",
    "env",
    "false",
    "find",
    "grep",
    "head",
    "id",
    "kill",
    "less",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mkfifo",
    "mknod",
    "mount",
    "mv",
    "nohup",
    "od",
    "ps",
    "printf",
    "readlink",
    "rm",
    "rmdir",
    "script",
    "sed",
    "seq",
    "setsid",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "stty",
    "tail",
    "tar",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "tty",
    "uname",
    "unshare",
    "vi",
    "wc",
    "yes",
]
FOLDERS = ("dev", "etc", "proc", "root", "run", "sys", "tmp", "usr/bin", "usr/lib", "usr/lib64")
TERMINFO = ("lib/terminfo/x/xterm-256color", "usr/share/terminfo/x/xterm-256color")
"""How programs draw on the agent's terminal; one of the two, as systems differ."""
MERGED = ("bin", "lib", "lib64", "sbin")
PASSWD = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n"
GROUP = "root:x:0:\nnogroup:x:65534:\n"
EPOCH = 1_700_000_000


def tiny_image(store: Store) -> Image:
    """The image, built in the store. Its environment has one variable: TINY=yes."""
    with store.scratch() as folder:
        _fill(folder)
        return config_of(store, "tiny", _keep(store, folder))


def with_layer(store: Store, image: Image, archive: bytes) -> Image:
    """An image with one layer more, for an engine: there is no folder of it."""
    tar = store.root / "layers" / f"more-{hashlib.sha256(archive).hexdigest()}.tar"
    tar.write_bytes(archive)
    more = config_of(store, "more", replace(image.layers[0], tar=tar, folder=tar))
    config = json.loads(more.config.read_bytes())
    layers = (*image.layers, *more.layers)
    config["rootfs"]["diff_ids"] = [layer.diff_id for layer in layers]
    content = json.dumps(config, sort_keys=True).encode()
    more.config.write_bytes(content)
    digest = Digest(f"sha256:{hashlib.sha256(content).hexdigest()}")
    return replace(more, digest=digest, layers=layers)


def config_of(store: Store, name: str, layer: ImageLayer) -> Image:
    """An image of this one layer; its diff_id is reckoned from its tar."""
    layer = replace(layer, diff_id=Digest(f"sha256:{sha256_file(layer.tar)}"))
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["TINY=yes"]},
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id]},
        },
        sort_keys=True,
    ).encode()
    digest = hashlib.sha256(config).hexdigest()
    path = store.root / "images" / f"{digest}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(config)
    return Image(
        name=name,
        digest=Digest(f"sha256:{digest}"),
        config=path,
        layers=(layer,),
        env={"TINY": "yes"},
    )


def _fill(root: Path) -> None:
    for name in FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "usr/sbin").symlink_to("bin")
    for name in MERGED:
        (root / name).symlink_to(f"usr/{name}")
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text(PASSWD)
    (root / "etc/group").write_text(GROUP)
    for name in PROGRAMS:
        if found := shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin"):
            _copy(Path(found), root, f"usr/bin/{name}")
    for name in TERMINFO:
        if (Path("/") / name).exists():
            target = root / "usr" / name.removeprefix("usr/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path("/") / name, target)
    _add_python(root)


def _add_python(root: Path) -> None:
    """The system's, with what a script needs of its library."""
    found = shutil.which("python3", path="/usr/bin:/bin")
    if found is None:
        return
    where = 'import sysconfig; print(sysconfig.get_path("stdlib"))'
    said = subprocess.run([found, "-Ic", where], capture_output=True, text=True, check=True)
    library = Path(said.stdout.strip())
    _copy(Path(found).resolve(), root, "usr/bin/python3")
    target = root / library.relative_to("/")
    skip = shutil.ignore_patterns("test", "idlelib", "*-packages", "__pycache__", "config-*")
    shutil.copytree(library, target, ignore=skip, ignore_dangling_symlinks=True)
    for module in (target / "lib-dynload").glob("*.so"):
        _copy_libraries(module, root)


def _copy(source: Path, root: Path, name: str) -> None:
    shutil.copy(source.resolve(), root / name)
    (root / name).chmod(0o755)
    _copy_libraries(source, root)


def _copy_libraries(program: Path, root: Path) -> None:
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(/\S+) \(0x", said):
        name = library.lstrip("/").removeprefix("usr/")
        target = root / "usr" / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(library).resolve(), target)


def _keep(store: Store, folder: Path) -> ImageLayer:
    """The folder as a tar, everything root's and of one date, and unpacked next to it."""

    def pinned(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = EPOCH
        return info

    layers = store.root / "layers"
    layers.mkdir(parents=True, exist_ok=True)
    draft = layers / "draft.tar"
    with tarfile.open(draft, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name, filter=pinned)
    digest = sha256_file(draft)
    draft.replace(layers / f"{digest}.tar")
    remove_tree(layers / digest)
    with tarfile.open(layers / f"{digest}.tar") as tar:
        tar.extractall(layers / digest, filter="fully_trusted")
    return ImageLayer(
        diff_id=Digest(f"sha256:{digest}"),
        tar=layers / f"{digest}.tar",
        folder=layers / digest,
    )
