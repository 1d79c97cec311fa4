"""What of a repository's own configuration of pytest a task takes over."""

import pytest

from sandbox.adapters.pytestini import pytest_options


@pytest.mark.parametrize(
    ("files", "options", "left"),
    [
        ({}, {}, ()),
        ({"setup.cfg": "[metadata]\nname = x\n"}, {}, ()),
        ({"setup.cfg": "[tool:pytest]\ntestpaths = t\nxfail_strict = true\n"},
         {"xfail_strict": "true"}, ("testpaths",)),
        ({"pytest.ini": "[pytest]\n", "tox.ini": "[pytest]\nmarkers = a\n"}, {}, ()),
        ({"tox.ini": "[pytest]\nmarkers =\n  a: b %s\n  c\n"}, {"markers": "a: b %s\nc"}, ()),
        ({"pyproject.toml": '[tool.pytest.ini_options]\nfilterwarnings = ["error", "ignore:x"]\n'
          'addopts = ["-ra", "--doctest-modules", "--cov=x"]\nxfail_strict = true\n'},
         {"filterwarnings": "error\nignore:x\nignore::pytest.PytestUnknownMarkWarning\n"
                "ignore::pytest.PytestConfigWarning", "xfail_strict": "true",
          "addopts": "--doctest-modules"}, ("addopts -ra", "addopts --cov=x")),
        ({"pyproject.toml": "[tool]\npytest = 7\n"}, {}, ()),
        ({"pyproject.toml": "broken ="}, {}, ()),
        ({"setup.cfg": "broken"}, {}, ()),
    ],
)  # fmt: skip
def test_of_a_repository_s_own_configuration_is_taken_what_finds_tests(
    files: dict[str, str], options: dict[str, str], left: tuple[str, ...]
):
    found = pytest_options({name: text.encode() for name, text in files.items()})
    assert found == (options, left)
