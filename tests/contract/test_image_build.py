"""The shipped locks rebuild to the bit, on any machine that reaches the archives."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.errors import ImageFault
from sandbox.formats import jsonfile, yamlfile
from sandbox.model.image import ImageLock, ImageRecipe
from sandbox.runtime.image.build import build
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.image.layout import INTERPRETER
from sandbox.runtime.image.pyc import pyc_entries, run_python
from sandbox.runtime.image.resolve import recipe_sha256, relock
from sandbox.runtime.image.stored import layer_tar, unpacked
from sandbox.runtime.store import Store

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "repos" / "images"
NAMES = ["python-3.11", "python-3.11-web"]
KEPT_OUT = [
    *("boltons", "click", "deepdiff", "h11", "jinja2", "more_itertools"),
    *("netaddr", "simpleeval", "sqlparse", "tomlkit", "werkzeug"),
]
"""What tasks are about: the image holds no second copy to read the answer from."""

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]


def quiet(text: str, done: int, total: int) -> None:
    assert 0 <= done <= total, text


def lock_of(name: str) -> ImageLock:
    return jsonfile.load(IMAGES / f"{name}.lock.json", ImageLock)


def recipe_of(name: str) -> ImageRecipe:
    return yamlfile.load(IMAGES / f"{name}.yaml", ImageRecipe)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Both images, built from nothing but their locks."""
    store = Store(tmp_path_factory.mktemp("first"))
    for name in NAMES:
        build(store, lock_of(name), quiet)
    return store


def with_downloads_of(store: Store, root: Path) -> Store:
    """A store with the same downloads, in files of its own, and nothing built."""
    shutil.copytree(store.root / "blobs", root / "blobs")
    return Store(root)


@pytest.mark.parametrize("name", NAMES)
def test_an_image_is_rebuilt_as_pinned(store, name):
    lock = lock_of(name)
    image = ensure(store, lock, quiet)
    assert image.digest == lock.config_digest
    assert [layer.diff_id for layer in image.layers] == [p.diff_id for p in lock.layers]


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_belongs_to_its_recipe(name):
    recipe = recipe_of(name)
    base = lock_of(recipe.base) if recipe.base else None
    assert lock_of(name).recipe_sha256 == recipe_sha256(recipe, base)


def test_another_user_elsewhere_builds_the_same_bytes(store, tmp_path):
    second = with_downloads_of(store, tmp_path / "elsewhere" / "deeper")
    code = (
        "import sys; from pathlib import Path\n"
        "from sandbox.formats import jsonfile; from sandbox.model.image import ImageLock\n"
        "from sandbox.runtime.image.build import build; from sandbox.runtime.store import Store\n"
        "lock = jsonfile.load(Path(sys.argv[1]), ImageLock)\n"
        "build(Store(Path(sys.argv[2])), lock, lambda *_: None)\n"
    )
    lock_file = IMAGES / "python-3.11-web.lock.json"
    environment = os.environ | {"PYTHONHASHSEED": "4711", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    subprocess.run(
        [sys.executable, "-c", code, lock_file, second.root],
        check=True,
        cwd=ROOT,
        env=environment,
        umask=0o077,
    )
    for pin in lock_of("python-3.11-web").layers:
        one, two = layer_tar(store, pin.diff_id), layer_tar(second, pin.diff_id)
        assert one.read_bytes() == two.read_bytes()


def test_bytecode_is_the_same_time_and_again(store, tmp_path):
    debs, wheels, _ = (unpacked(store, p.diff_id) for p in lock_of("python-3.11").layers)
    runs = []
    for name in ("once", "again"):
        (tmp_path / name).mkdir()
        runs.append(pyc_entries(debs, [wheels], tmp_path / name))
    assert runs[0] == runs[1]


def test_bytecode_names_its_source_in_the_image_and_its_time(store):
    image = ensure(store, lock_of("python-3.11"), quiet)
    debs, _, pyc = (layer.folder for layer in image.layers)
    source = debs / "usr/lib/python3.11/argparse.py"
    data = (pyc / "usr/lib/python3.11/__pycache__/argparse.cpython-311.pyc").read_bytes()
    assert data[4:8] == bytes(4)
    assert int.from_bytes(data[8:12], "little") == int(source.stat().st_mtime)
    assert b"/usr/lib/python3.11/argparse.py" in data
    assert str(store.root).encode() not in data


@pytest.mark.parametrize("layer", [0, 1])
def test_a_tampered_download_is_refused_by_name(store, tmp_path, layer):
    second = with_downloads_of(store, tmp_path / "second")
    pin = lock_of("python-3.11").layers[layer]
    victim = (pin.debs or pin.wheels)[-1]
    with second.blob(victim.sha256).open("r+b") as f:
        f.seek(200)
        f.write(b"tampered")
    with pytest.raises(ImageFault, match=f"refused: {victim.name}[_-].* is not what was pinned"):
        build(second, lock_of("python-3.11"), quiet)
    assert not layer_tar(second, pin.diff_id).exists()


def test_the_image_s_python_runs_without_root_or_namespaces(store):
    system = unpacked(store, lock_of("python-3.11").layers[0].diff_id)
    assert (system / INTERPRETER).exists()
    done = run_python(system, ["-c", "import sys, ssl, sqlite3; print(sys.version_info[:2])"])
    assert (done.returncode, done.stdout) == (0, b"(3, 11)\n")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_a_task_is_about_is_in_the_image(store, name):
    for layer in ensure(store, lock_of(name), quiet).layers:
        names = {path.name.lower() for path in layer.folder.rglob("*")}
        assert not [n for n in names if n.split(".")[0].split("-")[0] in KEPT_OUT]


def test_no_file_is_newer_than_the_epoch_nor_raises_privileges(store):
    lock = lock_of("python-3.11-web")
    for layer in ensure(store, lock, quiet).layers:
        for path in layer.folder.rglob("*"):
            status = path.lstat()
            assert status.st_mtime <= lock.epoch
            assert not status.st_mode & 0o6000


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="relocking asks apt-get")
def test_relocking_a_derived_image_adds_only_what_the_base_lacks(store):
    base = lock_of("python-3.11")
    recipe = ImageRecipe(
        schema=1, base=base.name, debs=("xxd", "jq"), wheels=("pluggy==1.6.0", "outcome==1.3.0")
    )
    with pytest.raises(ImageFault, match="pip cannot resolve the wheels"):
        relock(store, "mine", recipe, base, quiet)  # the base has another pluggy
    recipe = ImageRecipe(schema=1, base=base.name, debs=("xxd", "jq"), wheels=("pluggy",))
    lock = relock(store, "mine", recipe, base, quiet)
    assert lock.layers[:3] == base.layers
    assert [[d.name for d in p.debs] for p in lock.layers[3:]] == [["xxd"], []]
    assert ensure(store, lock, quiet).digest == lock.config_digest
