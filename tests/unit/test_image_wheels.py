"""Wheels are unpacked into the image's Python: same wheels, same bytes."""

import zipfile
from pathlib import Path

import pytest

from sandbox.errors import ImageFault
from sandbox.runtime.image.entry import Entry
from sandbox.runtime.image.wheels import wheels_entries

SITE = "usr/local/lib/python3.11/dist-packages"
NAME = "toy-1.0-py3-none-any.whl"
META = {
    "toy-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
    "toy-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


def wheel(folder: Path, files: dict[str, str], *, name: str = NAME) -> tuple[str, Path]:
    """Stored, like any blob, under a name that says nothing."""
    path = folder / "0123abcd"
    files = META | files
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        record = "".join(f'"{file}",,\n' for file in [*files, "toy-1.0.dist-info/RECORD"])
        archive.writestr("toy-1.0.dist-info/RECORD", record)
    return name, path


def entries(*wheels: tuple[str, Path]) -> dict[str, Entry]:
    return {e.path: e for e in wheels_entries(wheels)}


def test_modules_land_in_dist_packages(tmp_path):
    found = entries(wheel(tmp_path, {"toy/__init__.py": "x = 1\n"}))
    assert found[f"{SITE}/toy/__init__.py"].data == b"x = 1\n"
    assert found[f"{SITE}/toy"].kind == "folder"


def test_entry_points_become_scripts_of_the_image_s_python(tmp_path):
    points = "[console_scripts]\ntoy = toy.cli:App.main\n"
    found = entries(wheel(tmp_path, {"toy-1.0.dist-info/entry_points.txt": points}))
    script = found["usr/local/bin/toy"]
    assert script.mode == 0o755
    assert script.data.startswith(b"#!/usr/bin/python3\nimport sys\nfrom toy.cli import App\n")
    assert b"sys.exit(App.main())" in script.data


def test_scripts_of_the_wheel_get_the_image_s_interpreter(tmp_path):
    found = entries(wheel(tmp_path, {"toy-1.0.data/scripts/run": "#!python\nprint(1)\n"}))
    assert found["usr/local/bin/run"].data == b"#!/usr/bin/python3\nprint(1)\n"
    assert found["usr/local/bin/run"].mode == 0o755


def test_data_and_headers_have_their_places(tmp_path):
    files = {"toy-1.0.data/data/share/toy.txt": "1", "toy-1.0.data/headers/toy.h": "2"}
    found = entries(wheel(tmp_path, files))
    assert found["usr/local/share/toy.txt"].data == b"1"
    assert found["usr/local/include/python3.11/toy.h"].data == b"2"


def test_bytecode_of_the_wheel_is_left_out(tmp_path):
    found = entries(wheel(tmp_path, {"toy/__pycache__/x.cpython-311.pyc": "evil"}))
    assert not [p for p in found if "__pycache__" in p]


def test_record_lists_every_file_so_that_pip_can_remove_it(tmp_path):
    points = "[console_scripts]\ntoy = toy:main\n"
    files = {"toy/a,b.py": "", "toy-1.0.dist-info/entry_points.txt": points}
    found = entries(wheel(tmp_path, files))
    record = found[f"{SITE}/toy-1.0.dist-info/RECORD"].data.decode()
    assert "../../../bin/toy,sha256=" in record
    assert '"toy/a,b.py",sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n' in record
    assert record.endswith("toy-1.0.dist-info/RECORD,,\n")


def test_the_order_within_a_wheel_does_not_matter(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    one = wheel(tmp_path / "1", {"toy/a.py": "a", "toy/b.py": "b"})
    two = wheel(tmp_path / "2", {"toy/b.py": "b", "toy/a.py": "a"})
    assert entries(one) == entries(two)


def test_a_path_that_climbs_out_is_refused_by_name(tmp_path):
    with pytest.raises(ImageFault, match=NAME):
        entries(wheel(tmp_path, {"../../../../etc/cron.d/x": "evil"}))


def test_what_is_no_wheel_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_bytes(b"no zip")
    with pytest.raises(ImageFault, match=f"{NAME} is not a readable wheel"):
        wheels_entries([(NAME, tmp_path / "file")])
