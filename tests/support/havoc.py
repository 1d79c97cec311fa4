"""Run in a box by test_changes: does what programs do to files, at random; or lists every file.

python3 havoc.py do SEED COUNT
python3 havoc.py list
"""

import glob
import hashlib
import json
import os
import random
import shutil
import stat
import sys
from collections.abc import Callable, Iterator

UNUSED = [p for n in ("email", "xml", "asyncio", "unittest") for p in glob.glob(f"/usr/lib/*/{n}")]
TOPS = ("/srv", "/etc", "/root", *UNUSED)
"""The last are of the image, and nothing here needs them."""
ENGINES = ("/.dockerenv", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
UNSEEN = ("/proc", "/sys", "/dev", "/tmp/havoc.py", *ENGINES)


def everything(top: str = "/") -> Iterator[bytes]:
    """Every path below, those that are no part of a box's files left out."""
    for folder, names, files in os.walk(os.fsencode(top)):
        names[:] = sorted(n for n in names if os.fsdecode(os.path.join(folder, n)) not in UNSEEN)
        for name in (*names, *sorted(files)):
            path = os.path.join(folder, name)
            if os.fsdecode(path) not in UNSEEN:
                yield path


def tell(path: bytes, seen: dict[tuple[int, int], bytes]) -> list[object]:
    s = os.lstat(path)
    said: list[object] = [stat.S_IFMT(s.st_mode), stat.S_IMODE(s.st_mode), s.st_uid, s.st_gid]
    if stat.S_ISREG(s.st_mode):
        first = seen.setdefault((s.st_dev, s.st_ino), path) if s.st_nlink > 1 else path
        with open(path, "rb") as f:
            said += [hashlib.md5(f.read()).hexdigest(), s.st_mtime_ns, os.fsdecode(first)]
    elif stat.S_ISLNK(s.st_mode):
        said.append(os.fsdecode(os.readlink(path)))
    return said


def listing() -> None:
    seen: dict[tuple[int, int], bytes] = {}
    sys.stdout.write(json.dumps({os.fsdecode(p): tell(p, seen) for p in everything()}))


def pick(kind: Callable[[bytes], bool]) -> bytes:
    found = [p for top in TOPS for p in everything(top)]
    fitting = [p for p in found if kind(p) and not os.path.islink(p)]
    return random.choice(fitting) if fitting else os.fsencode("/srv")


def new_name() -> bytes:
    letters = random.choice(("abc", "with space", "\u00fc\u00f1", "new\nline", "x" * 120))
    return os.path.join(pick(os.path.isdir), os.fsencode(f"{letters}{random.random()}") + b"\xff")


def remove(path: bytes) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def write(path: bytes, text: str) -> None:
    with open(path, "w") as f:
        f.write(text)


def replace_folder() -> None:
    path = pick(os.path.isdir)
    if path not in [os.fsencode(t) for t in TOPS]:
        remove(path)
        random.choice((os.mkdir, lambda p: write(p, "was a folder")))(path)


def replace_file() -> None:
    path = pick(os.path.isfile)
    if path not in [os.fsencode(t) for t in TOPS]:
        remove(path)
        random.choice((os.mkdir, lambda p: os.symlink("elsewhere", p), os.mkfifo))(path)


def drop() -> None:
    path = pick(os.path.isfile)
    if os.path.isfile(path):
        remove(path)


def move() -> None:
    path = pick(os.path.exists)
    if path.startswith((b"/srv", b"/root")) and path not in (b"/srv", b"/root"):
        os.rename(path, path + b"_" if os.path.isdir(path) else new_name())


ACTS = (
    lambda: write(new_name(), "new" * random.randrange(5000)),
    lambda: os.mkdir(new_name()),
    lambda: os.symlink("/etc/passwd", new_name()),
    lambda: os.link(pick(os.path.isfile), new_name()),
    lambda: os.mkfifo(new_name()),
    lambda: os.chmod(pick(os.path.exists), random.choice((0o700, 0o755, 0o4755, 0o555))),
    lambda: os.chown(pick(os.path.exists), random.randrange(3), random.randrange(3)),
    lambda: os.utime(pick(os.path.isfile), ns=(5, random.randrange(1 << 60))),
    lambda: open(pick(os.path.isfile), "ab").close(),
    drop,
    move,
    replace_folder,
    replace_file,
)


def main() -> None:
    if sys.argv[1] == "list":
        listing()
        return
    random.seed(int(sys.argv[2]))
    for _ in range(int(sys.argv[3])):
        try:
            random.choice(ACTS)()
        except OSError:
            continue  # what cannot be done is no change


main()
