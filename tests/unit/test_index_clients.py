"""The machine's own pip, uv, npm and apt install from a frozen index, and are told what is not there."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.runtime.image.apt import CONFIG
from sandbox.runtime.store import Store
from tests.support.packages import deb, lock_of, serving, tarball, wheel

LOCK = "index.lock.jsonl"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, store: Store) -> Iterator[Run]:
    """A command on a machine whose whole network is the index."""
    lock = lock_of(
        wheel(store, "toy", "1.0", requires="toy-part>=1"),
        wheel(store, "toy", "0.9"),
        wheel(store, "toy-part", "1.5"),
        wheel(store, "toy-lost", "1.0", requires="nowhere"),
        tarball(store, "toy", "1.0.0", {"@toys/part": "^1.0.0"}),
        tarball(store, "toy", "2.0.0-rc.1", tags=("next",)),
        tarball(store, "@toys/part", "1.2.0"),
        deb(store, "toy"),
    )
    (tmp_path / "serving").mkdir()
    (tmp_path / "user.npmrc").touch()
    with serving(store, lock, tmp_path / "serving") as network:
        mine = ("PIP_", "UV_", "PYTHON", "NPM_CONFIG_", "NO_PROXY")
        kept = {k: v for k, v in os.environ.items() if not k.upper().startswith(mine)}
        more = {
            "HOME": str(tmp_path),
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_CACHE_DIR": str(tmp_path / "uv"),
            "UV_NO_CONFIG": "1",
            "npm_config_userconfig": str(tmp_path / "user.npmrc"),
            "npm_config_globalconfig": str(tmp_path / "global.npmrc"),
            "npm_config_cache": str(tmp_path / "npm"),
            "npm_config_update_notifier": "false",
        }

        def start(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command,
                cwd=tmp_path,
                env={**kept, **network, **more, **env},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )

        yield start


def has_pip() -> bool:
    done = subprocess.run([sys.executable, "-m", "pip", "-V"], capture_output=True, check=False)
    return done.returncode == 0


def uv() -> str | None:
    return shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")


PIP_INSTALL = [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--target", "site"]
UV_INSTALL = [uv() or "uv", "pip", "install", "--python", sys.executable, "--target", "site"]
PYTHONS = [
    pytest.param(PIP_INSTALL, marks=pytest.mark.skipif(not has_pip(), reason="no pip"), id="pip"),
    pytest.param(UV_INSTALL, marks=pytest.mark.skipif(uv() is None, reason="no uv"), id="uv"),
]
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="no npm")


@pytest.mark.parametrize("install", PYTHONS)
def test_python_packages_come_with_what_they_need(run: Run, tmp_path: Path, install: list[str]):
    done = run(*install, "Toy")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "toy.py").read_text() == "VERSION = '1.0'\n"
    assert (tmp_path / "site" / "toy_part.py").exists()


@pytest.mark.parametrize("install", PYTHONS)
def test_an_older_version_can_be_asked_for(run: Run, tmp_path: Path, install: list[str]):
    done = run(*install, "toy<1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "toy.py").read_text() == "VERSION = '0.9'\n"


@pytest.mark.skipif(not has_pip(), reason="no pip")
def test_pip_says_which_lock_does_not_list_what_is_missing(run: Run):
    for wanted, missing in (("flask", "flask"), ("toy-lost", "nowhere")):
        done = run(*PIP_INSTALL, wanted)
        assert done.returncode == 1
        assert f"{missing} is not in this box's frozen package index: {LOCK}" in done.stderr


@pytest.mark.skipif(uv() is None, reason="no uv")
def test_uv_takes_what_is_missing_as_not_there(run: Run):
    done = run(*UV_INSTALL, "flask")
    assert done.returncode == 1
    assert "flask was not found in the package registry" in " ".join(done.stderr.split())


@needs_npm
def test_npm_installs_scoped_packages_and_locks_the_public_addresses(run: Run, tmp_path: Path):
    done = run("npm", "install", "toy")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "node_modules" / "toy" / "index.js").read_text() == "// 1.0.0\n"
    assert (tmp_path / "node_modules" / "@toys" / "part" / "package.json").exists()
    assert "https://registry.npmjs.org/@toys/part/-/part-1.2.0.tgz" in (
        (tmp_path / "package-lock.json").read_text()
    )


@needs_npm
def test_npm_finds_a_version_by_its_tag(run: Run, tmp_path: Path):
    assert run("npm", "install", "toy@next").returncode == 0
    assert (tmp_path / "node_modules" / "toy" / "index.js").read_text() == "// 2.0.0-rc.1\n"


@needs_npm
def test_npm_says_which_lock_does_not_list_what_is_missing(run: Run):
    done = run("npm", "install", "left-pad")
    assert done.returncode != 0
    assert f"left-pad is not in this box's frozen package index: {LOCK}" in done.stderr


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="no apt-get")
def test_apt_updates_and_downloads_what_its_lists_promise(run: Run, tmp_path: Path):
    root = tmp_path / "apt"
    for name in ("state/lists/partial", "cache/archives/partial", "etc"):
        (root / name).mkdir(parents=True)
    (root / "status").touch()
    (root / "apt.conf").write_text(CONFIG.format(root=root))
    source = "deb [trusted=yes] http://deb.debian.org/debian bookworm main\n"
    (root / "sources.list").write_text(source)
    config = {"APT_CONFIG": str(root / "apt.conf")}
    done = run("apt-get", "--error-on=any", "update", **config)
    assert done.returncode == 0, done.stderr
    done = run("apt-get", "download", "toy", **config)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "toy_1.0-1_amd64.deb").exists()
    assert run("apt-get", "-s", "install", "sl", **config).returncode == 100
