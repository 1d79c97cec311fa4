"""Recipes of images: what makes sense together, and what is told of what does not."""

from pathlib import Path

import pytest

from sandbox.errors import ImageFault, SpecError
from sandbox.formats.imagefile import load_bases, load_recipe
from sandbox.runtime.image.foreign import address, repository


def recipe(home: Path, text: str) -> Path:
    path = home / "repos" / "images" / "x.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("schema: 1\n" + text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "source: {registry: 'ghcr.io/a/b:1'}",
        "source: {layout: images/a.tar, tag: v1}",
        "source: {dockerfile: {folder: images/a, network: default, args: {V: '1'}}}",
        "epoch: 1\ndebs: [bash]",
    ],
)
def test_each_kind_of_recipe_is_read(tmp_path, text):
    recipe(tmp_path, text)
    assert load_recipe(tmp_path, "x").schema == 1


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("source: {}", 2, "exactly one of `registry`, `layout` and `dockerfile`"),
        ("source:\n  registry: a/b\n  layout: c", 2, "exactly one of"),
        ("debs: [bash]\nsource: {registry: a/b}", 2, "`debs` beside `source`"),
        ("base: b\nfiles: ../x.tar", 3, "a tar beside the recipe"),
        ("source: {registry: a/b}\nenv: {A: b}", 3, "`env` beside `source`"),
        ("source:\n  layout: ../elsewhere", 3, "leads out of this folder"),
        ("source:\n  dockerfile:\n    folder: a\n    file: /etc/x", 5, "leads out of this folder"),
        ("source:\n  registry: a/b\n  tag: v1", 4, "`tag` is for a layout"),
        ("source:\n  regisrty: a/b", 3, "unknown key"),
        ("source:\n  dockerfile:\n    folder: a\n    network: host", 5, "network"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_line(tmp_path, text, line, why):
    path = recipe(tmp_path, text)
    with pytest.raises(SpecError) as e:
        load_recipe(tmp_path, "x")
    assert e.value.where == f"{path}:{line}"
    assert why in str(e.value)


def test_a_table_of_bases_may_be_missing(tmp_path):
    assert load_bases(tmp_path).bases == {}


@pytest.mark.parametrize(
    ("named", "asked"),
    [
        ("ubuntu", "docker.io/library/ubuntu:latest"),
        ("a/b:1", "docker.io/a/b:1"),
        ("localhost:5000/a:1", "localhost:5000/a:1"),
        ("ghcr.io/a/b.c-d:V_1", "ghcr.io/a/b.c-d:V_1"),
        (f"host.org/a:1@sha256:{'0' * 64}", f"host.org/a@sha256:{'0' * 64}"),
    ],
)
def test_an_address_is_asked_for_in_full(named, asked):
    assert address(named) == asked
    assert asked.startswith(repository(named))


@pytest.mark.parametrize("named", ["", "--help", "a b", "A/b", "host/a@sha256:1", "-a/b:1", "a:"])
def test_what_is_no_address_is_refused(named):
    with pytest.raises(ImageFault, match="is not an image of a registry"):
        address(named)
