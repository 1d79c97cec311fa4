"""Names to tasks, suites, runtimes and agents; and what is said when there is no such name."""

from pathlib import Path

import pytest

from sandbox.errors import NothingSelected, SpecError, UserError
from sandbox.formats.home import bundled_home
from sandbox.formats.taskfile import load_task
from sandbox.model.step import Observation, Run, Submit
from sandbox.model.task import Limits, TaskId, TaskSpec
from sandbox.rollout import plugins
from sandbox.rollout.agent import Opening
from sandbox.rollout.agents import Nop, Oracle, Scripted
from sandbox.rollout.catalogue import Catalogue, default_homes
from sandbox.rollout.command import Command
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.store import Store
from tests.support.homes import TASK, write_home

SUITES = "schema: 1\nsuites:\n  core:\n    - toy-2\n    - toy-1\n  one: [toy-1]\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_home(tmp_path / "home")
    write_home(tmp_path / "home", TASK.replace("id: toy-1", "id: toy-2"), name="toy-2")
    (tmp_path / "home" / "task_specs" / "suites.yaml").write_text(SUITES)
    return tmp_path / "home"


def ids(found: list[TaskSpec]) -> list[str]:
    return [t.id for t in found]


def test_tasks_are_chosen_by_suite_and_pattern_in_the_suite_s_order(home: Path):
    catalogue = Catalogue((home,))
    assert ids(catalogue.choose("core", ())) == ["toy-2", "toy-1"]
    assert ids(catalogue.choose("core", ("toy-1", "toy-2"))) == ["toy-2", "toy-1"]
    assert ids(catalogue.choose(None, ("*",))) == ["toy-1", "toy-2"]
    assert ids(catalogue.choose(None, ("toy-2",))) == ["toy-2"]


@pytest.mark.parametrize(
    ("suite", "patterns", "error", "says", "hint"),
    [
        (None, (), NothingSelected, "no task was named", "--suite"),
        (None, ("toy-11",), UserError, "there is no task `toy-11`", "did you mean `toy-1`?"),
        (None, ("nothing-like-it",), UserError, "there is no task", "stillroom list"),
        (None, ("x*",), NothingSelected, "no task matches `x*`", "stillroom list"),
        ("cor", (), UserError, "there is no suite `cor`", "known: core, one"),
        ("one", ("toy-2",), UserError, "there is no task `toy-2`", ""),
    ],
)
def test_a_name_that_means_nothing_gets_a_hint(home, suite, patterns, error, says, hint):
    with pytest.raises(error) as caught:
        Catalogue((home,)).choose(suite, patterns)
    assert says in str(caught.value)
    assert hint in caught.value.hint


def test_a_suite_gets_a_did_you_mean(home: Path):
    with pytest.raises(UserError) as caught:
        Catalogue((home,)).choose("cores", ())
    assert "core" in caught.value.hint


def test_the_first_home_that_has_a_task_or_suite_wins(home: Path, tmp_path: Path):
    mine = write_home(tmp_path / "mine", TASK.replace("turns: 5", "turns: 9"))
    (mine / "task_specs" / "suites.yaml").write_text("schema: 1\nsuites: {one: []}\n")
    both = Catalogue((mine, home))
    assert both.load(TaskId("toy-1")).limits.turns == 9
    assert both.load(TaskId("toy-2")).limits.turns == 5
    assert both.suites()["one"].tasks == ()
    assert len(both.suites()["core"].tasks) == 2
    assert Catalogue((home, mine)).load(TaskId("toy-1")).limits.turns == 5


def test_a_suite_that_names_a_task_that_is_not_there_is_told_with_its_line(home: Path):
    (home / "task_specs" / "toy-1" / "task.yaml").unlink()
    with pytest.raises(SpecError, match=r"suites\.yaml:5: there is no task `toy-1`"):
        Catalogue((home,)).suites()


@pytest.mark.parametrize(
    "text", ["", "schema: 2", "schema: 1\nsuits: {}\n", "schema: 1\nsuites: {a: b}"]
)
def test_a_malformed_suites_file_is_told(home: Path, text: str):
    (home / "task_specs" / "suites.yaml").write_text(text)
    with pytest.raises(SpecError, match=r"suites\.yaml"):
        Catalogue((home,)).suites()


def test_a_home_without_anything_has_no_tasks(tmp_path: Path):
    assert Catalogue((tmp_path, tmp_path / "none")).tasks() == {}
    assert Catalogue((tmp_path,)).suites() == {}


def test_the_folder_one_is_in_comes_first_if_it_has_tasks(home: Path, tmp_path: Path):
    more = tmp_path / "more"
    assert default_homes(home, [more]) == (home, more, bundled_home())
    assert default_homes(tmp_path, [more, more]) == (more, bundled_home())
    assert default_homes(bundled_home(), []) == (bundled_home(),)


def test_every_task_that_comes_along_can_be_loaded_and_its_suites_hold():
    catalogue = Catalogue((bundled_home(),))
    tasks = catalogue.tasks()
    assert len(tasks) >= 12
    loaded = [load_task(home, task) for task, home in tasks.items()]
    assert len({t.digest for t in loaded}) == len(loaded)
    assert set(catalogue.suites()["core"].tasks) <= set(tasks)


def test_runtimes_are_found_by_name(tmp_path: Path):
    assert isinstance(plugins.runtime("embedded", Store(tmp_path)), EmbeddedRuntime)
    found = plugins.runtime("sandbox.runtime.embedded.host:EmbeddedRuntime", Store(tmp_path))
    assert isinstance(found, EmbeddedRuntime)


@pytest.mark.parametrize(
    ("name", "says", "hint"),
    [
        ("podman", "unknown runtime `podman`", "known: docker, embedded"),
        ("fake", "unknown runtime `fake`", "known: docker, embedded"),
        ("no.such:Thing", "cannot load runtime `no.such:Thing`: No module", ""),
        ("sandbox.errors:Nothing", "cannot load runtime", ""),
        ("a b:c d", "unknown runtime", "package.module:Class"),
        (":Thing", "unknown runtime", ""),
        ("", "unknown runtime ``", "embedded"),
        (".relative:Thing", "cannot load runtime", ""),
    ],
)
def test_an_unknown_runtime_gets_a_hint(tmp_path: Path, name, says, hint):
    with pytest.raises(UserError) as caught:
        plugins.runtime(name, Store(tmp_path))
    assert says in str(caught.value)
    assert hint in caught.value.hint


def test_agents_are_found_by_name(tmp_path: Path):
    store = Store(tmp_path)
    (tmp_path / "commands").write_text("ls\n")
    assert isinstance(plugins.agent("nop", store), Nop)
    assert isinstance(plugins.agent("oracle", store), Oracle)
    assert isinstance(plugins.agent("sandbox.rollout.agents:Nop", store), Nop)
    assert isinstance(plugins.agent("shell:a:b c", store), Command)
    assert plugins.agent("shell:a:b c", store).name == "shell:a:b c"
    assert plugins.agent(f"script:{tmp_path}/commands", store).name == "script:commands"


@pytest.mark.parametrize(
    ("name", "says", "hint"),
    [
        ("orcle", "unknown agent `orcle`", "known: nop, oracle, script:FILE, shell:COMMAND"),
        ("script:", "needs a file", "--agent script:"),
        ("script", "needs a file", ""),
        ("shell:", "needs a command", "--agent 'shell:"),
        ("no.such:Agent", "cannot load agent", ""),
        ("script:/no/such/file", "no such file", ""),
    ],
)
def test_an_unknown_agent_gets_a_hint(tmp_path: Path, name, says, hint):
    with pytest.raises(UserError) as caught:
        plugins.agent(name, Store(tmp_path))
    assert says in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["nop:x", "sandbox.rollout.agents:Script"])
def test_an_agent_that_cannot_be_made_from_what_was_given_is_the_user_s_mistake(tmp_path, name):
    with pytest.raises(UserError, match="cannot"):
        plugins.agent(name, Store(tmp_path))


def opening(folder: Path, reference: bytes = b"") -> Opening:
    return Opening(
        task=TaskId("t"),
        attempt=0,
        instruction="",
        workdir="/w x",
        limits=Limits(),
        folder=folder,
        reference=lambda: reference,
    )


@pytest.mark.parametrize(
    ("name", "text", "commands"),
    [
        ("a.txt", "ls\n# no\n\n  pwd\n", ["ls", "  pwd"]),
        ("a.sh", "", []),
        ("a.yaml", "- ls\n- |\n  cat <<X\n  a\n  X\n", ["ls", "cat <<X\na\nX\n"]),
        ("a.yml", "[a, b]", ["a", "b"]),
    ],
)
def test_a_script_s_commands_are_played_and_then_it_submits(tmp_path, name, text, commands):
    (tmp_path / name).write_text(text)
    session = Scripted(str(tmp_path / name)).begin(opening(tmp_path))
    seen = [session.act(Observation()) for _ in range(len(commands) + 2)]
    assert seen == [*(Run(c) for c in commands), Submit(), Submit()]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: b\n", "should be a list"),
        ("- ls\n- 7\n", r"a\.yaml:2: a command should be a string"),
        ("- [\n", "not valid YAML"),
        ("", "the file is empty"),
        ("- a\n- {b: c}\n", r"a\.yaml:2: a command should be a string"),
    ],
)
def test_a_malformed_script_is_told_with_its_line(tmp_path: Path, text: str, says: str):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(SpecError, match=says):
        Scripted(str(tmp_path / "a.yaml"))


def test_a_script_can_be_played_by_many_rollouts(tmp_path: Path):
    (tmp_path / "a").write_text("ls\n")
    agent = Scripted(str(tmp_path / "a"))
    sessions = [agent.begin(opening(tmp_path)) for _ in range(2)]
    assert [s.act(Observation()) for s in sessions] == [Run("ls")] * 2


def test_the_oracle_applies_the_reference_in_the_working_directory(tmp_path: Path):
    session = Oracle().begin(opening(tmp_path, b"the patch\n"))
    first, second, third = (session.act(Observation()) for _ in range(3))
    assert first == Run("cd '/w x'")
    assert isinstance(second, Run)
    assert "dGhlIHBhdGNoCg==" in second.command
    assert third == Submit()
