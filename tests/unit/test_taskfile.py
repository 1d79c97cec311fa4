"""A bad task file gives one error, at its line, in words that help."""

import re
from pathlib import Path

import pytest

from sandbox.errors import SpecError
from sandbox.formats import yamlfile
from sandbox.formats.taskfile import load_task
from tests.support.homes import CHECKS, TASK, write_home

HEX = "a" * 40

# (what is wrong, text to replace, its replacement, where the error is, what it says, its hint)
# The line is that of the first text that matches; `~` before it: the line is not that exact.
MALFORMED: list[tuple[str, str, str, str, str, str]] = [
    ("unknown key", "workdir:", "workdr:", "workdr:", "unknown key `workdr`", "`workdir`"),
    ("unknown key in repo", "  commit:", "  comit:", "comit:", "`repo.comit`", "`commit`"),
    ("unknown key in image", "  digest: sha256:00", "  digst: sha256:00", "digst", "`image.digst`",
     "`digest`"),
    ("unknown key in verifier", "  runner:", "  runer:", "runer:", "`verifier.runer`", "`runner`"),
    ("unknown key in bundle", "    folder:", "    foldr:", "foldr", "`verifier.bundle.foldr`",
     "`folder`"),
    ("unknown key in limits", "  turns:", "  turn:", "turn:", "`limits.turn`", "`turns`"),
    ("unknown key in clock", "  at:", "  att:", "att:", "`clock.att`", "`at`"),
    ("unknown key in metadata", "  licence:", "  license:", "license:", "`metadata.license`",
     "`licence`"),
    ("unknown key in solution", "  patch:", "  pach:", "pach:", "`solution.pach`", "`patch`"),
    ("unknown key in submission", "  paths: [src]", "  path: [src]", "path: [src]",
     "`submission.path`", "`paths`"),
    ("unknown key like no other", "workdir: /work/toy", "workdir: /work/toy\nzzz: 1", "zzz",
     "unknown key `zzz`", "known keys: schema, id"),
    ("missing key", "workdir: /work/toy\n", "", "schema", "`workdir` is missing", ""),
    ("missing key within", "  runner: pytest\n", "", "verifier:", "`verifier.runner` is missing",
     ""),
    ("missing clock", "clock:\n  at: 2024-05-15T12:00:00Z\n", "", "schema", "`clock` is missing",
     ""),
    ("number for a string", "  name: toy", "  name: 7", "name: 7", "`repo.name` should be a string",
     "quotes"),
    ("unquoted digits as a commit", f'"{HEX}"', "1" * 40, "111", "`repo.commit` should be a string",
     "quotes"),
    ("string for a number", "  turns: 5", "  turns: many", "turns", "`limits.turns`", ""),
    ("fraction for a whole number", "  turns: 5", "  turns: 1.5", "turns", "`limits.turns`", ""),
    ("truth for a number", "  turns: 5", "  turns: true", "turns", "`limits.turns`", ""),
    ("list for a mapping", 'env:\n  LEVEL: "3"', "env: [a]", "env", "`env`", ""),
    ("mapping for a list", "  run: [tests]", "  run: {a: b}", "run:", "`verifier.run`", ""),
    ("string for a list", "  paths: [src]", "  paths: src", "paths: src", "`submission.paths`", ""),
    ("null", "workdir: /work/toy", "workdir:", "workdir", "`workdir` should be a string", ""),
    ("number in env", 'LEVEL: "3"', "LEVEL: 3", "LEVEL", "`env.LEVEL` should be a string",
     "quotes"),
    ("unknown schema", "schema: 1", "schema: 2", "schema", "`schema`", ""),
    ("unknown runner", "runner: pytest", "runner: nose", "runner", "`verifier.runner`", ""),
    ("a network", "workdir:", "network: host\nworkdir:", "network", "`network`", ""),
    ("unknown difficulty", "difficulty: easy", "difficulty: so-so", "difficulty",
     "`metadata.difficulty`", ""),
    ("id is not the folder's name", "id: toy-1", "id: toy-2", "id: toy-2", "not the folder's name",
     "rename"),
    ("instruction outside", "instruction.md", "../instruction.md", "instruction:",
     "beside task.yaml", ""),
    ("absolute instruction", "instruction: instruction.md", "instruction: /etc/passwd",
     "instruction", "beside task.yaml", ""),
    ("no such instruction", "instruction.md", "nothing.md", "~", "no such file", ""),
    ("short commit", f'"{HEX}"', '"abc1234"', "commit", "`abc1234` is not a commit id",
     "git rev-parse"),
    ("a branch as commit", f'"{HEX}"', "main", "commit", "`main` is not a commit id", "rev-parse"),
    ("capital hex", f'"{HEX}"', f'"{"A" * 40}"', "commit", "is not a commit id", "rev-parse"),
    ("bad tree", '"' + "b" * 40 + '"', '"' + "g" * 40 + '"', "tree", "is not a tree id", ""),
    ("short digest", "sha256:" + "0" * 64, "sha256:00", "  digest: sha256:00", "is not a digest",
     "64 hex"),
    ("digest of another kind", "sha256:" + "1" * 64, "md5:" + "1" * 32, "digest: md5",
     "is not a digest", "sha256:"),
    ("relative workdir", "workdir: /work/toy", "workdir: work", "workdir", "plain absolute path",
     "/work/project"),
    ("workdir with ..", "workdir: /work/toy", "workdir: /work/toy/..", "workdir",
     "plain absolute path", ""),
    ("workdir is the root", "workdir: /work/toy", "workdir: /", "workdir", "plain absolute path",
     ""),
    ("workdir with a trailing slash", "workdir: /work/toy", "workdir: /work/toy/", "workdir",
     "plain absolute path", ""),
    ("workdir with two slashes", "workdir: /work/toy", "workdir: //work/toy", "workdir",
     "plain absolute path", ""),
    ("NUL in workdir", "workdir: /work/toy", 'workdir: "/work/\\0toy"', "workdir", "", ""),
    ("NUL in a path", "[src]", '["s\\0rc"]', "paths", "does not stay within", ""),
    ("NUL in the instruction's name", "instruction.md", '"a\\0b"', "instruction",
     "beside task.yaml", ""),
    ("NUL in env", 'LEVEL: "3"', 'LEVEL: "3\\0"', "LEVEL", "NUL", ""),
    ("bad variable name", "LEVEL:", "1LEVEL:", "1LEVEL", "`1LEVEL` is not a variable name", ""),
    ("no submission paths", "paths: [src]", "paths: []", "paths: []", "nothing would be submitted",
     "name a file"),
    ("submission escapes", "[src]", "[../src]", "[../src]", "does not stay within", ""),
    ("a submission in the box's /usr", "[src]", "[/usr/local]", "[/usr", "is no place for a", "/srv"),
    ("a submission that is the workdir", "[src]", "[/work/toy/src]", "[/work", "not apart from", ""),
    ("a submission above the workdir", "[src]", "[/work]", "[/work]", "not apart from", ""),
    ("a submission on the task's own PATH", 'LEVEL: "3"\nsubmission:\n  paths: [src]',
     "PATH: /opt/x/bin:/bin\nsubmission:\n  paths: [/opt/x/lib]", "[/opt", "in PATH: /opt/x", ""),
    ("a solution that cannot tell of the box", "paths: [src]\nsolution:\n  patch: solution.patch",
     f'paths: [/srv]\nsolution:\n  repo: {{name: a, commit: "{HEX}", tree: "{HEX}"}}', "  repo: {",
     "says nothing of files outside", "`patch`"),
    ("git as submission", "[src]", "[.git/hooks]", "[.git", "does not stay within", ""),
    ("empty submission path", "[src]", "['']", "['']", "does not stay within", ""),
    ("an option as submission", "[src]", "[--all]", "[--all]", "does not stay within", ""),
    ("second path escapes", "[src]", "\n    - src\n    - ../x", "- ../x", "`../x`", ""),
    ("no solution", "  patch: solution.patch", "  paths: [src]", "solution:",
     "either `patch` or `repo`", ""),
    ("two solutions", "  patch: solution.patch",
     f'  patch: solution.patch\n  repo: {{name: a, commit: "{HEX}", tree: "{HEX}"}}', "solution:",
     "either `patch` or `repo`", ""),
    ("solution escapes", "solution.patch", "../../x.patch", "patch:", "beside task.yaml", ""),
    ("no bundle", "    folder: bundle\n", "", "bundle:", "needs `folder` or `repo`", ""),
    ("bundle escapes", "folder: bundle", "folder: ../other/bundle", "folder:",
     "under verifiers/", ""),
    ("bundle without paths", "    paths: [tests]\n", "", "bundle:", "needs `paths`", ""),
    ("bundle paths escape", "    paths: [tests]", "    paths: [a/../../b]", "paths: [a",
     "does not stay within", ""),
    ("nothing to run", "run: [tests]", "run: []", "run:", "nothing would be run", "name a file"),
    ("a module that has no name", "runner: pytest\n  run: [tests]",
     "runner: unittest\n  run: [my-tests]", "run:", "cannot be imported", "a Python name"),
    ("a plain run of other tests", "runner: pytest\n  run: [tests]\n  options:\n    markers: slow",
     f"runner: go\n  run: [.]\n  layers: [plain]\n  plain: sha256:{'0' * 64}", "layers",
     "`plain` is for tests of pytest, and not of go", "`canary`"),
    ("an option of no runner", "runner: pytest\n  run: [tests]\n  options:\n    markers: slow",
     "runner: shell\n  run: [tests]\n  options:\n    shell: bash", "shell: bash",
     "runner `shell` has no option `shell`", "it knows none"),
    ("an option of another runner", "runner: pytest\n  run: [tests]", "runner: go\n  run: [./...]",
     "markers: slow", "runner `go` has no option `markers`", "it knows mod, tags"),
    ("all of what is no crate", "runner: pytest", "runner: node", "markers", "no option", ""),
    ("all for a runner without", "run: [tests]", "run: [.]", "run:", "does not stay within", ""),
    ("a folder of crates", "runner: pytest\n  run: [tests]", "runner: cargo\n  run: [crates]", "run:",
     "nothing that cargo tests", "tests/it.rs"),
    *(
        (what, "  seconds: 60", f"  services: [{{{given}}}]\n  seconds: 60", "services", message, hint)
        for what, given, message, hint in (
            ("a service without a command", "name: a, run: ' ', ready: {port: 1}", "command line", ""),
            ("a service without a name", "name: A, run: x, ready: {port: 1}", "no name of", "lower"),
            ("a service ready at once", "name: a, run: x, ready: {}", "one of `port`", "8080"),
            ("a service ready twice", "name: a, run: x, ready: {port: 1, seconds: 1}", "one of", ""),
            ("no port", "name: a, run: x, ready: {port: 65536}", "between 1 and 65535", ""),
            ("a path from nowhere", "name: a, run: x, ready: {path: a.sock}", "not an absolute", ""),
            ("a wait that is too long", "name: a, run: x, ready: {seconds: 30}", "less than", ""),
            ("a service for ever", "name: a, run: x, seconds: .inf, ready: {port: 1}", "between 0", ""),
            ("a service that writes elsewhere", "name: a, run: x, ready: {port: 1}, writable: [/etc]",
             "does not stay within", ""),
            ("two services of a name", "name: a, run: x, ready: {port: 1}}, {name: a, run: x, ready: {port: 1}",
             "another service `a`", "rename"),
        )
    ),
    *(
        (f"checks that write to {path}", "  seconds: 60", f"  writable: [{path}]\n  seconds: 60", "writable",
         message, "")
        for path, message in (
            ("/usr/bin", "no place for a submission"), ("../x", "does not stay within"),
            (".", "the hidden tests"), ("/", "not a plain absolute path"),
        )
    ),
    ("an option to run", "run: [tests]", "run: ['-p', x]", "run:", "does not stay within", ""),
    ("checks outside", "  seconds: 60", "  checks: ../x.yaml", "checks", "under verifiers/", ""),
    ("no such checks", "  seconds: 60", "  checks: x.yaml", "~", "no such file", ""),
    ("no time for checks", "seconds: 60", "seconds: 0", "seconds", "between 0 and", ""),
    ("endless checks", "seconds: 60", "seconds: .inf", "seconds", "", ""),
    ("NaN seconds", "seconds: 60", "seconds: .nan", "seconds", "", ""),
    ("checks for days", "seconds: 60", "seconds: 1e9", "seconds", "", ""),
    ("NaN limit", "turns: 5", "wall_seconds: .nan", "wall_seconds", "`wall_seconds`", ""),
    ("infinite limit", "turns: 5", "wall_seconds: .inf", "wall_seconds", "`wall_seconds`", ""),
    ("negative limit", "turns: 5", "memory_mib: -5", "memory_mib", "`memory_mib`", ""),
    ("zero turns", "turns: 5", "turns: 0", "turns", "`turns` should be more than 0", ""),
    ("tiny memory", "turns: 5", "memory_mib: 1", "memory_mib", "at least 16 MiB", ""),
    ("too few processes", "turns: 5", "pids: 2", "pids", "at least 8", ""),
    ("a number as large as a book", "turns: 5", "turns: " + "9" * 5000, "turns", "", ""),
    ("hex as large as a book", "turns: 5", "turns: 0x" + "f" * 5000, "turns", "", ""),
    ("half a character", "licence: MIT", 'licence: "\\uD800"', "licence", "", ""),
    ("a control character", "licence: MIT", "licence: M\x01T", "licence", "not valid YAML", ""),
    ("replay of nothing", "clock:\n", "network:\n  mode: replay\nclock:\n", "network:",
     "needs `cassette`", "stillroom record"),
    ("replay without its digest", "clock:\n",
     "network: {mode: replay, cassette: tape}\nclock:\n", "network:", "needs `digest`",
     "stillroom record"),
    ("a cassette that nobody plays", "clock:\n", "network:\n  cassette: tape\nclock:\n",
     "cassette:", "is for `mode: replay`", "change the mode"),
    ("a digest of the real network", "clock:\n",
     f"network:\n  mode: open\n  digest: sha256:{'7' * 64}\nclock:\n", "digest: sha256:77",
     "is for `mode: replay`", "change the mode"),
    ("a cassette elsewhere", "clock:\n",
     f"network: {{mode: replay, cassette: ../tape, digest: 'sha256:{'0' * 64}'}}\nclock:\n",
     "network:", "beside task.yaml", ""),
    ("a cassette's digest that is none", "clock:\n",
     "network: {mode: replay, cassette: tape, digest: new}\nclock:\n", "network:",
     "`new` is not a digest", "64 hex"),
    ("an unknown key in network", "clock:\n", "network:\n  casette: tape\nclock:\n",
     "casette:", "unknown key `network.casette`", "`cassette`"),
    ("clock not in UTC", "12:00:00Z", "12:00:00+02:00", "at:", "is not an instant", "UTC"),
    ("clock without seconds", "T12:00:00Z", "T12:00Z", "at:", "is not an instant", "UTC"),
    ("clock with a day only", "2024-05-15T12:00:00Z", "2024-05-15", "at:", "is not an instant",
     "UTC"),
    ("no day of the calendar", "05-15T", "02-30T", "at:", "no day of the calendar", "UTC"),
    ("no hour of the day", "T12:", "T25:", "at:", "no day of the calendar", "UTC"),
    ("digits of another script", "2024-05-15", "٢٠٢٤-05-15", "at:", "is not an instant", "UTC"),
    ("long ago", "2024-05-15", "1999-05-12", "at:", "between 2000 and 2037", "dated 2000"),
    ("too late", "2024-05-15", "2038-05-15", "at:", "between 2000 and 2037", ""),
    ("unknown mode of the clock", ":00Z", ":00Z\n  mode: frozen", "mode:", "`clock.mode`", ""),
    ("a clock that goes back", ":00Z", ":00Z\n  mode: step\n  step_seconds: -1", "step_seconds:",
     "between a nanosecond and an hour", ""),
    ("steps too small to be one", ":00Z", ":00Z\n  mode: step\n  step_seconds: 1.0e-10",
     "step_seconds:", "between a nanosecond and an hour", ""),
    ("NaN steps", ":00Z", ":00Z\n  mode: step\n  step_seconds: .nan", "step_seconds:",
     "between a nanosecond and an hour", ""),
    ("steps of a clock that ticks", ":00Z", ":00Z\n  step_seconds: 2", "step_seconds:",
     "means nothing with `mode: ticking`", "mode: step"),
    ("a word for strict", ":00Z", ":00Z\n  strict: very", "strict:", "`clock.strict`", ""),
    ("unknown key in random", "limits:", "random:\n  sed: 1\nlimits:", "sed:", "`random.sed`",
     "`seed`"),
    ("a negative seed", "limits:", "random:\n  seed: -1\nlimits:", "seed:", "between 0 and 2^63",
     ""),
    ("a huge seed", "limits:", "random:\n  seed: 9223372036854775808\nlimits:", "seed:",
     "between 0 and 2^63", ""),
    ("a fraction as seed", "limits:", "random:\n  seed: 1.5\nlimits:", "seed:", "`random.seed`",
     ""),
    ("a key twice", "workdir: /work/toy", "workdir: /a/b\nworkdir: /a/b", "workdir: /a/b",
     "`workdir` stands here twice", "remove"),
    ("a key twice within", "  turns: 5", "  turns: 5\n  turns: 6", "turns: 6",
     "`turns` stands here twice", "remove"),
    ("an alias", 'env:\n  LEVEL: "3"', "env: &e\n  LEVEL: *e", "~", "", ""),
    ("an alias of a value", "  licence: MIT\n  source: made", "  licence: &l MIT\n  source: *l #",
     "source: *l", "aliases", "write the value out"),
    ("a merge key", "  licence: MIT", "  <<: {licence: MIT}", "<<", "unknown key", ""),
    ("a tab", "  licence: MIT", "\tlicence: MIT", "licence: MIT", "not valid YAML", "indentation"),
    ("an open bracket", "[src]", "[src", "~", "not valid YAML", ""),
    ("a Python object", "licence: MIT", "licence: !!python/name:os.system", "licence",
     "not supported", ""),
    ("binary data", "licence: MIT", "licence: !!binary aGk=", "licence", "not supported", ""),
    ("a list as key", "licence: MIT", "[a, b]: MIT", "[a, b]", "a key should be a plain word", ""),
    ("two documents", "metadata:", "---\nmetadata:", "~", "not valid YAML", ""),
    ("a date as licence", "licence: MIT", "licence: !!timestamp x\n  zzz: 1", "zzz", "unknown key",
     ""),
    ("a bad whole number", "turns: 5", "turns: !!int five", "turns", "not supported", ""),
    ("a bad truth", "turns: 5", "turns: !!bool five", "turns", "not supported", ""),
    ("a list tagged as a number", "turns: 5", "turns: !!int [1]", "turns", "", ""),
    ("an empty whole number", "turns: 5", "turns: !!int ''", "turns", "not supported", ""),
]  # fmt: skip


def line_of(text: str, wanted: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if wanted in line)


def refused(home: Path) -> SpecError:
    with pytest.raises(SpecError) as caught:
        load_task(home, "toy-1")
    return caught.value


def test_a_valid_task_loads(tmp_path: Path):
    task = load_task(write_home(tmp_path), "toy-1")
    assert (task.id, task.instruction, task.env) == ("toy-1", "Mend it.\n", {"LEVEL": "3"})
    assert [(c.id[-4:], c.weight, c.gate) for c in task.verifier.checks] == [
        ("_one", 1.0, False),
        ("_two", 3.0, False),
        ("gate", 0.0, True),
    ]


@pytest.mark.parametrize(
    ("old", "new", "at", "says", "hint"), [m[1:] for m in MALFORMED], ids=[m[0] for m in MALFORMED]
)
def test_a_malformed_task_is_one_error_at_its_line(tmp_path: Path, old, new, at, says, hint):
    assert TASK.count(old) >= 1
    text = TASK.replace(old, new, 1)
    error = refused(write_home(tmp_path, text))
    if at != "~":
        where = tmp_path / "task_specs" / "toy-1" / "task.yaml"
        line = line_of(text, at)
        if says.endswith("twice"):
            line = max(i for i, found in enumerate(text.splitlines(), 1) if at in found)
        assert error.where == f"{where}:{line}"
    assert says in str(error)
    assert hint in error.hint
    assert "\n" not in str(error)
    assert len(str(error)) < 1000


MALFORMED_CHECKS = [
    ("unknown key", "gates:", "gate:", "gate:", "unknown key `gate`", "`gates`"),
    ("unknown key of a check", "    weight: 3", "    wieght: 3", "wieght", "wieght", ""),
    ("no scored check", CHECKS[CHECKS.index("scored") : CHECKS.index("gates")], "scored: []\n",
     "scored", "at least one", ""),
    ("no scored key", CHECKS[CHECKS.index("scored") : CHECKS.index("gates")], "", "schema",
     "`scored` is missing", ""),
    ("the same check twice", "    weight: 3", "    weight: 3\n  - tests/test_a.py::test_one",
     "~", "stands under `scored` already", "remove one"),
    ("a gate that is scored", "test_gate", "test_one", "~", "stands under `scored` already",
     "remove one"),
    ("an excluded gate", "test_flaky", "test_gate", "id: tests/test_a.py::test_gate",
     "stands under `gates` already", "remove one"),
    ("negative weight", "weight: 3", "weight: -3", "id: tests/test_a.py::test_two",
     "0 or more", ""),
    ("a weight that swallows all others", "weight: 3", "weight: 1.7e+308", "id: tests/test_a.py::test_two",
     "at most", ""),
    ("NaN weight", "weight: 3", "weight: .nan", "~", "", ""),
    ("infinite weight", "weight: 3", "weight: .inf", "~", "", ""),
    ("weight as text", "weight: 3", "weight: heavy", "~", "weight", ""),
    ("empty id", "tests/test_a.py::test_one", "' '", "' '", "the id is empty", ""),
    ("number as id", "tests/test_a.py::test_one", "7", "- 7", "", ""),
    ("a list of scored lists", "- tests/test_a.py::test_one", "- [a]", "- [a]", "", ""),
    ("gates as text", "gates:\n  - tests/test_a.py::test_gate", "gates: all", "gates", "`gates`",
     ""),
    ("excluded without a reason", "    reason: asks the network\n", "", "~", "reason` is missing",
     ""),
    ("another schema", "schema: 1", "schema: 3", "schema", "`schema`", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "at", "says", "hint"),
    [m[1:] for m in MALFORMED_CHECKS],
    ids=[m[0] for m in MALFORMED_CHECKS],
)
def test_a_malformed_checks_file_is_one_error_at_its_line(tmp_path: Path, old, new, at, says, hint):
    assert old in CHECKS
    text = CHECKS.replace(old, new, 1)
    error = refused(write_home(tmp_path, checks=text))
    where = tmp_path / "verifiers" / "toy-1" / "checks.yaml"
    expected = rf"{re.escape(str(where))}:{line_of(text, at) if at != '~' else '[0-9]+'}"
    assert re.fullmatch(expected, error.where)
    assert says in str(error)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("data", "where", "says"),
    [
        (b"", "", "the file is empty"),
        (b"# only a comment\n", "", "the file is empty"),
        (b"- a\n- b\n", ":1", ""),
        (b"just words\n", ":1", ""),
        (b"null\n", ":1", ""),
        (b"schema: 1\nid: \xff\xfe\n", ":2", "not UTF-8"),
        (bytes(range(256)) * 4, "", "not UTF-8"),
        (b"\0\0\0\0", ":1", "not valid YAML"),
        (b"a: " + b"[" * 60 + b"]" * 60, ":1", "nested too deeply"),
        (b"a: " + b"[" * 200_000, ":1", ""),
        (b"a: &a [x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n", ":2", "aliases"),
        (b"a: &a\n - *a\n", ":", ""),
        (b"a: b: c\n", ":1", "not valid YAML"),
        (b"x" * (yamlfile.MAX_BYTES + 1), "", "larger than 16 MiB"),
        (b"{" * 100_000, ":1", ""),
        (b"? ? ? ? a\n", ":1", ""),
        (b"schema: 1_\nschema: 2\n", ":2", "twice"),
    ],
    ids=lambda v: str(v[:20]),
)
def test_what_is_no_yaml_mapping_is_one_error(tmp_path: Path, data: bytes, where: str, says: str):
    home = write_home(tmp_path)
    path = home / "task_specs" / "toy-1" / "task.yaml"
    path.write_bytes(data)
    error = refused(home)
    assert error.where.startswith(f"{path}{where}")
    assert says in str(error)


def test_a_task_that_is_a_folder_or_not_there_is_told_by_name(tmp_path: Path):
    assert "no such file" in str(refused(tmp_path))
    (tmp_path / "task_specs" / "toy-1" / "task.yaml").mkdir(parents=True)
    assert "cannot be read" in str(refused(tmp_path))


def test_an_empty_instruction_is_refused(tmp_path: Path):
    home = write_home(tmp_path)
    (home / "task_specs" / "toy-1" / "instruction.md").write_text(" \n")
    assert "the instruction is empty" in str(refused(home))


@pytest.mark.parametrize("name", ["Toy", "-toy", ".toy", "a" * 101, "toy 1", "tÖy"])
def test_an_id_that_is_no_name_is_refused(tmp_path: Path, name: str):
    text = TASK.replace("id: toy-1", f"id: '{name}'")
    with pytest.raises(SpecError, match="is not a task id"):
        load_task(write_home(tmp_path, text, name=name), name)
