"""A repository's own configuration of pytest, as far as it decides how tests are found and run.

The verifier gives pytest a configuration of its own, so that no submission has a say in it. What the
repository's tests need of theirs is taken from the pinned tree, once, when a task is made.
"""

import configparser
import shlex
import tomllib
from collections.abc import Mapping
from typing import Any

FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""In the order in which pytest looks for them; the first that has a section for it counts."""
_TAKEN = (
    "python_files", "python_classes", "python_functions", "markers", "filterwarnings", "pythonpath",
    "xfail_strict", "usefixtures", "doctest_optionflags", "doctest_encoding",
    "empty_parameter_set_mark", "consider_namespace_packages",
    "disable_test_id_escaping_and_forfeit_all_rights_to_community_support",
)  # fmt: skip
_FLAGS = ("--doctest-modules",)
_FLAGS_WITH = ("--doctest-glob=", "--import-mode=")
"""Of `addopts`: by these, others are found or they are found under another name."""
_MISSED = (
    "ignore::pytest.PytestUnknownMarkWarning",
    "ignore::pytest.PytestConfigWarning",
)
"""Where warnings are errors: marks and options are unknown when a plugin of theirs is not installed."""
_SECTIONS = {"setup.cfg": "tool:pytest"}


def pytest_options(files: Mapping[str, bytes]) -> tuple[dict[str, str], tuple[str, ...]]:
    """`verifier.options`, and what of the configuration is left out.

    files: of those that FILES names, the ones that are there.
    """
    for name in FILES:
        if name in files and (section := _section(name, files[name])) is not None:
            return _options(section)
    return {}, ()


def _section(name: str, data: bytes) -> dict[str, Any] | None:
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        if name.endswith(".toml"):
            tool = tomllib.loads(text).get("tool", {})
            found = tool.get("pytest", {}).get("ini_options")
            return found if isinstance(found, dict) else None
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
    except (tomllib.TOMLDecodeError, configparser.Error, AttributeError):
        return None
    section = _SECTIONS.get(name, "pytest")
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if name.endswith("pytest.ini") else None


def _options(section: Mapping[str, Any]) -> tuple[dict[str, str], tuple[str, ...]]:
    taken = {key: _text(section[key]) for key in _TAKEN if key in section}
    if "filterwarnings" in taken:
        taken["filterwarnings"] = "\n".join([taken["filterwarnings"], *_MISSED])
    flags = _flags(section.get("addopts", ""))
    kept = [f for f in flags if f in _FLAGS or f.startswith(_FLAGS_WITH)]
    if kept:
        taken["addopts"] = " ".join(kept)
    left = [key for key in section if key not in _TAKEN and key != "addopts"]
    dropped = [flag for flag in flags if flag not in kept]
    return taken, (*left, *(f"addopts {flag}" for flag in dropped))


def _flags(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(one) for one in value]
    try:
        return shlex.split(str(value))
    except ValueError:
        return str(value).split()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return str(value).strip()
