"""repos/images/: recipes, and the table of bases."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sandbox.errors import SpecError
from sandbox.formats import yamlfile
from sandbox.model.image import BaseTable, ImageRecipe, ImageSource

BASES = "bases.yaml"
_MADE_HERE = (
    "base",
    "epoch",
    "debs",
    "leave_out",
    "wheels",
    "wheels_alone",
    "links",
    "files",
    "env",
)


def load_recipe(home: Path, name: str) -> ImageRecipe:
    """`home`/repos/images/<name>.yaml. Raises SpecError with file and line."""
    doc = yamlfile.open_document(home / "repos" / "images" / f"{name}.yaml")
    recipe = doc.parse(ImageRecipe)
    if recipe.files is not None and PurePosixPath(recipe.files).name != recipe.files:
        raise SpecError("`files` should be a tar beside the recipe", where=doc.where(("files",)))
    if recipe.source:
        given = [key for key in _MADE_HERE if getattr(recipe, key) not in (None, ())]
        if given:
            raise SpecError(
                f"`{given[0]}` beside `source`: an image from elsewhere is taken as it is",
                where=doc.where((given[0],)),
                hint="remove one of them; what has to be added can be added by a Dockerfile",
            )
        for key, message, hint in _rules(recipe.source):
            raise SpecError(message, where=doc.where(("source", *key)), hint=hint)
    return recipe


def load_bases(home: Path) -> BaseTable:
    """`home`/repos/images/bases.yaml; without that file, no bases. Raises SpecError."""
    path = home / "repos" / "images" / BASES
    return yamlfile.load(path, BaseTable) if path.exists() else BaseTable(schema=1, bases={})


def _rules(source: ImageSource) -> Iterator[tuple[tuple[str, ...], str, str]]:
    if sum(s is not None for s in (source.registry, source.layout, source.dockerfile)) != 1:
        yield (), "`source` needs exactly one of `registry`, `layout` and `dockerfile`", ""
    if source.tag and source.layout is None:
        yield ("tag",), "`tag` is for a layout", "write host/name:tag for an image of a registry"
    if source.layout is not None and not _inside(source.layout):
        yield ("layout",), f"`{source.layout}` leads out of this folder", _INSIDE
    if (dockerfile := source.dockerfile) is None:
        return
    for key, path in (("folder", dockerfile.folder), ("file", dockerfile.file)):
        if not _inside(path):
            yield ("dockerfile", key), f"`{path}` leads out of this folder", _INSIDE


_INSIDE = "give a path below it, without `..`"


def _inside(path: str) -> bool:
    return bool(path) and not path.startswith("/") and ".." not in PurePosixPath(path).parts
