import pytest

from sandbox.formats.harbor_wants import package_of, wants
from sandbox.formats.shellwords import simple_commands


def asked(text: str, **files: str) -> list[tuple[str, str]]:
    return [(w.kind, w.what) for w in wants(text, "test.sh", read=files.get)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("apt-get update && apt-get install -y curl=7.1 git", ["curl", "git"]),
        ("sudo DEBIAN_FRONTEND=x apt install -t bookworm jq > /dev/null 2>&1", ["jq"]),
        (
            "pip install 'numpy>=1.2' pandas==2.0 --break-system-packages",
            ["numpy>=1.2", "pandas==2.0"],
        ),
        ("python3.12 -m pip install -q pytest", ["pytest"]),
        ("uv pip install --system pytest==8.4.1", ["pytest==8.4.1"]),
        ("uv add pytest && uv run pytest /tests", ["pytest"]),
        ("uvx -p 3.13 -w a==1 --with b,c pytest --ctrf x", ["a==1", "b", "c", "pytest"]),
        ("uvx --from harbor-rewardkit rewardkit /tests", ["harbor-rewardkit"]),
        ("uvx ruff@0.5.0 check", ["ruff==0.5.0"]),
        ("if ! true; then ( timeout -k 3 10 pip install x ); fi", ["x"]),
        ("echo pip install no; cat <<EOF\npip install no\nEOF\n", []),
        ("bash -c 'pip install x && true'", ["x"]),
        ("# pip install no", []),
        ("curl -LsSf https://astral.sh/uv/install.sh | sh", []),
        ("wget -O- http://localhost:80/x", []),
    ],
)
def test_packages_are_seen_in_a_script(line, found):
    assert [what for _, what in asked(line)] == found


@pytest.mark.parametrize(
    "line",
    [
        "curl -fsSL https://example.org/x.sh | bash",
        "npm install -g x",
        "npx jest",
        "git clone https://example.org/r",
        "pip install git+https://example.org/r",
        "pip install -e .",
        "pip install --index-url https://example.org/simple torch",
        "cargo install ripgrep",
        "apk add git",
        "pip install -r unknown.txt",
    ],
)
def test_what_nobody_offline_answers_is_seen_too(line):
    assert "other" in [kind for kind, _ in asked(line)]


PROJECT = """\
[build-system]
requires = ["setuptools>=61"]
[project]
name = "p"
dependencies = ["six"]
[project.optional-dependencies]
test = ["pytest>=8"]
"""


@pytest.mark.parametrize("line", ["pip install -e .[test]", "uv pip install --system '/app[test]'"])
def test_a_project_needs_what_it_says(line):
    found = list(wants(line, "", read=lambda name: PROJECT if "pyproject" in name else None))
    assert [w.what for w in found] == ["setuptools>=61", "six", "pytest>=8", "wheel"]


def test_a_project_that_does_not_say_what_it_needs_is_not_to_be_had():
    assert asked("pip install /app")[0][0] == "other"
    assert asked("pip install ./x-1-py3-none-any.whl")[0][0] == "other"
    odd = "[project]\ndependencies = [1]\n"
    assert [w.kind for w in wants("pip install /app", "", read=lambda _: odd)] == ["other"]


def test_requirements_of_a_file_are_read():
    text = "# tools\npytest==8.4.1 # here\n\n-e .\n"
    found = asked("pip install -r r.txt", **{"r.txt": text})
    assert found == [("pip", "pytest==8.4.1"), ("other", "pip install -e .")]


def test_each_knows_its_line():
    text = "true\n\napt-get install \\\n  -y jq &&\n  pip install x\n"
    assert [w.where for w in wants(text, "t.sh")] == ["t.sh:3", "t.sh:5"]


def test_commands_are_split_as_a_shell_does():
    text = 'a \'b c\' "d\\"e" f\\ g | h; X=1 i $(j k) & l 2>&1\n'
    found = simple_commands(text)
    assert [c.words for c in found] == [
        ("a", "b c", 'd"e', "f g"), ("h",), ("i", "$(j k)"), ("l", "2>&1"),
    ]  # fmt: skip
    assert [c.piped for c in found] == [True, False, False, False]


def test_a_package_has_one_name():
    assert {package_of(r) for r in ("Py_Test[x]>=1", "py-test==2", "PY.TEST")} == {"py-test"}
