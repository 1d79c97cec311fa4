"""What an image has where a submission may change it, and which images forbid what a task declares."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import SpecError
from sandbox.formats.digest import Entry
from sandbox.model.task import SubmissionSpec, TaskSpec
from sandbox.runtime.fake import NO_IMAGE
from sandbox.runtime.image.rooted import rooted_files
from sandbox.runtime.spec import Image, ImageLayer
from tests.support.homes import a_task

Layer = dict[str, bytes | str | None]
"""Path → content, a link's target, or None for what is hidden."""


@pytest.fixture
def image(tmp_path: Path) -> Callable[..., Image]:
    def make(*layers: Layer, **env: str) -> Image:
        made = []
        for number, files in enumerate(layers):
            folder = tmp_path / f"layer-{number}"
            folder.mkdir()
            for name, content in files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if content is None:
                    os.mknod(path, 0o020000, 0)
                elif isinstance(content, str):
                    path.symlink_to(content)
                else:
                    path.write_bytes(content)
            made.append(ImageLayer(diff_id=NO_IMAGE.digest, tar=folder, folder=folder))
        return replace(NO_IMAGE, layers=tuple(made), env=env)

    return make


def declaring(home: Path, *paths: str) -> TaskSpec:
    return a_task(home, submission=SubmissionSpec(paths=("src", *paths)))


def test_the_image_s_files_are_those_that_a_box_shows(image, tmp_path: Path):
    lower: Layer = {
        "srv/out/a": b"1", "srv/out/gone": b"1", "srv/out/d/x": b"1", "srv/out/e/y": b"1",
        "srv/out/l": "/etc/shadow", "srv/outer": b"1", "etc/app.conf": b"1", "etc/hosts": b"1",
    }  # fmt: skip
    upper: Layer = {"srv/out/a": b"2", "srv/out/gone": None, "srv/out/d": None, "srv/out/z": b""}
    made = image(lower, upper)
    (tmp_path / "layer-1/srv/out/z").chmod(0o755)
    task = declaring(tmp_path / "home", "/srv/out", "/etc/app.conf", "/none/at/all")
    assert rooted_files(made, task) == (
        Entry("/etc/app.conf", "file", b"1"),
        Entry("/srv/out/a", "file", b"2"),
        Entry("/srv/out/e/y", "file", b"1"),
        Entry("/srv/out/l", "link", b"/etc/shadow"),
        Entry("/srv/out/z", "exec", b""),
    )


def test_an_image_is_not_looked_at_for_the_working_directory_s_sake(tmp_path: Path):
    gone = ImageLayer(diff_id=NO_IMAGE.digest, tar=tmp_path, folder=tmp_path / "none")
    assert rooted_files(replace(NO_IMAGE, layers=(gone,)), a_task(tmp_path / "home")) == ()


BAD_IMAGES: dict[str, tuple[Layer, dict[str, str], str]] = {
    # name: (a layer, its variables, what is said of declaring /opt/app)
    "a link": ({"opt/app": "/usr/lib"}, {}, "`/opt/app` is a link"),
    "below a link": ({"opt": "usr"}, {}, "below what is no folder"),
    "below a file": ({"opt": b"x"}, {}, "below what is no folder"),
    "an interpreter's tree": ({}, {"PATH": "/opt/app/bin:/bin"}, "PATH of image `none`: /opt/app"),
    "below an interpreter's tree": ({}, {"PATH": "/bin:/opt/bin"}, "PATH of image `none`: /opt/bin"),
    "libraries": ({}, {"LD_LIBRARY_PATH": "/opt/app/lib"}, "LD_LIBRARY_PATH"),
    "a home": ({}, {"HOME": "/opt/app"}, "HOME"),
    "packages": ({"opt/app/lib/site-packages/x.py": b""}, {}, "libraries: /opt/app/lib/site-pack"),
    "a shared library": ({"opt/app/libx.so.1": b""}, {}, "libraries: /opt/app/libx.so.1"),
    "a command's end": ({"usr/bin/x": "/opt/app/cli.js"}, {}, "the link /usr/bin/x leads into"),
    "a command's end, from there": ({"usr/bin/x": "../../opt/app/x"}, {}, "/usr/bin/x leads into"),
    "a setting's end": ({"etc/alternatives/x": "/opt/app"}, {}, "/etc/alternatives/x leads into"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_IMAGES)
def test_what_a_verdict_is_made_with_in_this_image_is_refused(image, tmp_path: Path, name: str):
    layer, env, says = BAD_IMAGES[name]
    path = "/opt/bin/mine" if name.startswith("below an") else "/opt/app"
    with pytest.raises(SpecError, match=r"task\.yaml") as caught:
        rooted_files(image(layer, **env), declaring(tmp_path / "home", path))
    assert says in str(caught.value)
