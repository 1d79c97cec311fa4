"""An instance and its repository, as the files of a task."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from glob import escape
from typing import Any

from sandbox.adapters.pytestini import FILES, pytest_options
from sandbox.adapters.swebenchrules import changes_of, file_of, is_pytest, task_id
from sandbox.adapters.taskhome import SOLUTION, Draft
from sandbox.errors import UserError
from sandbox.formats.digest import Entry
from sandbox.formats.patch import Change
from sandbox.formats.patchapply import Outcome, outcome
from sandbox.formats.patchlines import PatchError
from sandbox.formats.patchwrite import make_patch
from sandbox.formats.runnerrules import inside
from sandbox.formats.swebench import Instance, Shape, ends_open
from sandbox.model.instant import good_near, seconds_of, written
from sandbox.model.reserved import held_back
from sandbox.model.task import ImagePin, RepoPin, SubmissionSpec
from sandbox.runtime.repo.local import Snapshot

_MOST_BYTES = 256 << 20
_SECONDS = 1800
"""What the family's own harness gives to the tests of one instance."""
KINDS: dict[Shape, str] = {
    "4.x": "SWE-bench", "5.x": "SWE-bench", "repository": "SWE-bench", "smith": "SWE-smith",
    "pro": "SWE-bench Pro",
}  # fmt: skip
_PLACES = {"pro": "/app"}
_USUAL_PLACE = "/testbed"
_TEST_FOLDERS = ("tests", "test", "testing", "e2e")
_TEST_NAMES = ("test_*.py", "*_test.py")
_COMPILED = (".pyx", ".pyi.in", ".c", ".cc", ".cpp", ".f", ".f90", ".rs")
_CUT = "cut at a space when the data set was made: which test it is cannot be told"
_WEEK = 7 * 86400
_DIFFICULTY = {
    "<15 min fix": "easy", "15 min - 1 hour": "easy", "1-4 hours": "medium", ">4 hours": "hard",
}  # fmt: skip
_DIGITS = re.compile(r"\d{9,13}")
_MILLISECONDS = 10**11


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    draft: Draft
    notes: tuple[str, ...]
    world: tuple[Entry, ...] | None = None
    """Of an inverted instance: the files of the repository with the bug in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tests:
    """The hidden tests, and what of the lists can be a check."""

    files: tuple[str, ...]
    """That are run."""
    bundle: tuple[Entry, ...]
    places: tuple[str, ...]
    """Whatever of the working directory they replace."""
    checks: dict[str, Any]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What an instance is made into a task with."""

    instance: Instance
    at: Snapshot
    source: str
    """Where its repository lies."""
    image: ImagePin
    epoch: int
    """The date of the image's files."""
    tried: bool = False
    """Will a trial tell what ids that were cut stand for?"""


def drafted(given: Given) -> Drafted:
    """Raises UserError, in whose message stands why it cannot be a task."""
    instance, at = given.instance, given.at
    gold, hidden = changes_of(instance.patch), changes_of(instance.test_patch)
    base = at.files(
        [n for c in (*gold, *hidden) for n in (c.old, c.new)]
        + [file_of(t) for t in (*instance.fail_to_pass, *instance.pass_to_pass)]
        + list(FILES)
    )
    _require_apart(gold, hidden)
    made = _made(gold, base, "patch")
    tests = _tests(given, base, _made(hidden, base, "test_patch"), hidden)
    solution = instance.patch.encode()
    if instance.inverted:
        solution = make_patch(_after(base, made).values(), base.values())
    touched = sorted({name for c in gold for name in (c.old, c.new)})
    submission = _submission(at, touched, tests.places)
    options, left = pytest_options({p: base[p].data for p in FILES if p in base})
    pin = dataclasses.replace(at.pin, name=_repo_name(instance))
    draft = Draft(
        id=task_id(instance.instance_id),
        spec=_spec(given, pin, submission, tests, options),
        instruction=_instruction(instance),
        checks=tests.checks,
        bundle=tests.bundle,
        origin=_origin(instance),
        solution=solution,
        pin=pin,
        source={"git": {"url": given.source}},
    )
    notes = (*instance.notes, *tests.notes, *_notes(instance, at, touched, submission, left))
    world = tuple(_broken(instance, at, made).values()) if instance.inverted else None
    return Drafted(draft=draft, notes=notes, world=world)


def in_folder(draft: Draft, pin: RepoPin) -> Draft:
    """The same, with a repository that is the folder repos/<id>/."""
    repo = {"name": pin.name, "commit": pin.commit, "tree": pin.tree}
    return dataclasses.replace(
        draft,
        pin=pin,
        source={"folder": {"path": pin.name}},
        spec={**draft.spec, "repo": repo},
    )


def _instruction(instance: Instance) -> str:
    parts = [instance.problem_statement.rstrip()]
    for title, text in (
        ("Requirements", instance.requirements),
        ("Interface", instance.interface),
    ):
        if text.strip():
            parts.append(f"## {title}\n\n{text.strip()}")
    return "\n\n".join(parts) + "\n"


def _require_apart(gold: Iterable[Change], hidden: Iterable[Change]) -> None:
    both = {n for c in gold for n in (c.old, c.new)} & {n for c in hidden for n in (c.old, c.new)}
    if both:
        raise UserError(f"`patch` and `test_patch` both change {min(both)!r}")


def _made(changes: Iterable[Change], base: Mapping[str, Entry], key: str) -> Outcome:
    try:
        return outcome(changes, base, max_bytes=_MOST_BYTES)
    except PatchError as e:
        raise UserError(f"`{key}` does not apply to `base_commit`: {e}") from None


def _after(base: Mapping[str, Entry], made: Outcome) -> dict[str, Entry]:
    kept = {path: e for path, e in base.items() if path not in made.removed}
    return {**kept, **{e.path: e for e in made.files}}


def _broken(instance: Instance, at: Snapshot, bug: Outcome) -> dict[str, Entry]:
    """The repository with the bug in it, and without the files of the tests that show it."""
    tops = {name.partition("/")[0] for name in at.names}
    tests = {file_of(t) for t in instance.fail_to_pass}
    return {p: e for p, e in _after(at.files(tops), bug).items() if p not in tests}


def _tests(
    given: Given,
    base: Mapping[str, Entry],
    made: Outcome,
    changes: Iterable[Change],
) -> _Tests:
    instance, after = given.instance, _after(base, made)
    lost = {
        file_of(t)
        for t in (*instance.fail_to_pass, *instance.pass_to_pass)
        if is_pytest(t) and file_of(t) not in after
    }
    why = {t: _left_out(t, lost) for t in (*instance.fail_to_pass, *instance.pass_to_pass)}
    scored = [t for t in instance.fail_to_pass if not why[t]]
    if not scored and given.tried:
        scored = [t for t in instance.fail_to_pass if why[t] == _CUT]
        why |= dict.fromkeys(scored, "")
    if not scored:
        first = instance.fail_to_pass[0]
        raise UserError(f"no test of `FAIL_TO_PASS` can be a check: {first[:100]}: {why[first]}")
    gates = [t for t in instance.pass_to_pass if not why[t]]
    cut = (t for t in why if is_pytest(t) and ends_open(t))  # a trial may tell which they are
    files = sorted({file_of(t) for t in (*scored, *gates, *cut)} - lost)
    touched = {name for c in changes for name in (c.old, c.new)}
    places = sorted(touched | set(files))
    excluded = [{"id": t, "reason": reason} for t, reason in why.items() if reason]
    checks: dict[str, Any] = {
        "schema": 1,
        "scored": [scored_check(t) for t in scored],
        "gates": [gate_check(t) for t in gates],
    }
    if excluded:
        checks["excluded"] = excluded
    note = f"{len(excluded)} ids are no checks: see `excluded` of checks.yaml" if excluded else ""
    if bad := [p for p in places if not inside(p)]:
        raise UserError(f"{bad[0]!r} is no place for a hidden test")
    return _Tests(
        files=tuple(files),
        bundle=tuple(after[p] for p in places if p in after),
        places=tuple(places),
        checks=checks,
        notes=(note,) if note else (),
    )


def scored_check(test: str) -> dict[str, Any]:
    """As the family's own rule has it: what fails as expected has passed."""
    return {"id": test, "accept": ["xfailed"]}


def gate_check(test: str) -> dict[str, Any]:
    """So has what is skipped, of the tests that passed before."""
    return {"id": test, "accept": ["skipped", "xfailed"]}


def _left_out(test: str, lost: set[str]) -> str:
    """Why this test can be no check; empty if it can."""
    if not is_pytest(test):
        return "no id of pytest's"
    if file_of(test) in lost:
        return "its file is not there, neither at the commit nor by the test patch"
    if ends_open(test):
        return _CUT
    return ""


def _submission(at: Snapshot, touched: list[str], hidden: tuple[str, ...]) -> SubmissionSpec:
    """All but tests: what the reference changes, whatever it is called, is not among those."""
    tops = {name.partition("/")[0] for name in (*at.names, *touched)}
    folders = [
        f"**/{folder}/**"
        for folder in _TEST_FOLDERS
        if not any(folder in name.split("/")[:-1] for name in touched)
    ]
    names = [p for p in _TEST_NAMES if not any(fnmatchcase(_last(n), p) for n in touched)]
    usual = SubmissionSpec(paths=("x",)).exclude
    return SubmissionSpec(
        paths=tuple(sorted(top for top in tops if inside(top))),
        exclude=(*usual, *folders, *names, *map(escape, hidden)),
    )


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _spec(
    given: Given, pin: RepoPin, submission: SubmissionSpec, tests: _Tests, options: dict[str, str]
) -> dict[str, Any]:
    instance, at = given.instance, given.at
    workdir = _PLACES.get(instance.shape, _USUAL_PLACE)
    return {
        "schema": 1,
        "id": task_id(instance.instance_id),
        "instruction": "instruction.md",
        "repo": {"name": pin.name, "commit": pin.commit, "tree": pin.tree},
        "image": {"name": given.image.name, "digest": given.image.digest},
        "workdir": workdir,
        "env": {"PYTHONPATH": ":".join(_search_path(workdir, at.names))},
        "submission": {"paths": list(submission.paths), "exclude": list(submission.exclude)},
        "solution": {"patch": SOLUTION},
        "verifier": {
            "bundle": {"folder": "bundle", "paths": list(tests.places)},
            "runner": "pytest",
            "run": list(tests.files),
            **({"options": options} if options else {}),
            "seconds": _SECONDS,
        },
        "clock": {"at": _clock(instance.created_at, max(given.epoch, at.seconds))},
        "metadata": {
            "category": "bug-fix",
            "difficulty": _DIFFICULTY.get(instance.difficulty, "medium"),
            "licence": "NOASSERTION",
            "source": f"{KINDS[instance.shape]}: {instance.instance_id}",
            "tags": ["imported", instance.repo],
        },
    }


def _search_path(workdir: str, names: Iterable[str]) -> list[str]:
    """Where packages lie in a repository that is not installed."""
    found = [workdir]
    for folder in ("src", "lib"):
        if any(n.startswith(f"{folder}/") and n.endswith(".py") for n in names):
            found.insert(0, f"{workdir}/{folder}")
    return found


def _clock(created: str, newest: int) -> str:
    """Near the day on which the issue was solved, and after all that is there was made."""
    begin = max(_moment(created), newest)
    weeks = (written(begin + n * _WEEK) for n in range(12))
    return next(at for at in map(good_near, weeks) if seconds_of(at) >= begin)


def _moment(created: str) -> int:
    """Seconds since the epoch; 0 if it does not say."""
    if _DIGITS.fullmatch(created):
        number = int(created)
        return number // 1000 if number >= _MILLISECONDS else number
    try:
        found = datetime.fromisoformat(created)
    except ValueError:
        return 0
    seconds = found.replace(tzinfo=found.tzinfo or UTC).timestamp()
    return int(seconds) if 0 < seconds < seconds_of("2037-01-01T00:00:00Z") else 0


def _repo_name(instance: Instance) -> str:
    owner_and_name = re.sub(r"[^A-Za-z0-9._-]", "-", instance.repo.replace("/", "__")).lstrip("._-")
    return f"{owner_and_name or 'repo'}-{instance.base_commit[:12]}"


def _origin(instance: Instance) -> dict[str, Any]:
    """What an export needs to name it again, and what is written down and used for nothing else."""
    return {
        "kind": KINDS[instance.shape],
        "instance_id": instance.instance_id,
        "shape": instance.shape,
        "repo": instance.repo,
        "base_commit": instance.base_commit,
        "version": instance.version,
        "environment_setup_commit": instance.environment_setup_commit,
        "created_at": instance.created_at,
        "difficulty": instance.difficulty,
        "image": instance.image,
    }


def _notes(
    instance: Instance,
    at: Snapshot,
    touched: Iterable[str],
    submission: SubmissionSpec,
    left: tuple[str, ...],
) -> Iterable[str]:
    if beyond := [n for n in touched if not submission.takes(n, at.names)]:
        why = "reserved" if held_back(beyond[0], at.names) else "among the hidden tests"
        yield f"the reference changes {beyond[0]!r}, which is {why}: no submission can"
    if left:
        yield f"of the repository's own pytest configuration is left out: {', '.join(left)}"
    if instance.created_at and not _moment(instance.created_at):
        yield f"`created_at` is {instance.created_at[:40]!r}, which no clock can be set to: it is set by the files"
    if instance.eval_type == "fail_only":
        yield "`eval_type: fail_only`: there a test that did not run counts as passed, here it does not"
    if at.submodules:
        yield f"submodules are empty folders: {', '.join(at.submodules)}"
    if sources := sorted(n for n in at.names if n.endswith(_COMPILED))[:1]:
        yield f"it may have to be compiled ({sources[0]}): then an image of its own has to bring that"
