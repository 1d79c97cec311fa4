"""Which instances can become a task at all, and by what name: what the data alone can tell. Pure."""

import hashlib
import re
from collections.abc import Iterator

from sandbox.formats.patch import Change, parse
from sandbox.formats.patchlines import PatchError
from sandbox.formats.swebench import Instance, ends_open
from sandbox.model.task import TaskId

MOST_PATCH_BYTES = 64 << 20
_LONGEST_ID = 100
_COMMIT = re.compile(r"[0-9a-f]{40}")
_UNITTEST = re.compile(r"\S+ \(\S+\)")
_OF_REPOSITORY = {"django/django": "Django's own runner", "sympy/sympy": "sympy's own runner"}
_OF_LANGUAGE = {
    **dict.fromkeys(("go", "golang"), "`go test` (Go)"),
    **dict.fromkeys(("js", "javascript"), "a runner of JavaScript (jest, mocha, ...)"),
    **dict.fromkeys(("ts", "typescript"), "a runner of TypeScript (jest, vitest, ...)"),
    "rust": "`cargo test` (Rust)",
    "java": "Maven or Gradle (Java)",
    "php": "phpunit (PHP)",
    "ruby": "RSpec or minitest (Ruby)",
}
_SHOWN = 3


def task_id(instance_id: str) -> TaskId:
    """Ours are in small letters, and 100 of them at most: what is longer ends in its hash."""
    name = instance_id.lower().replace("+", "-").lstrip("._-") or "x"
    if len(name) > _LONGEST_ID:
        name = f"{name[:87]}-{hashlib.sha256(instance_id.encode()).hexdigest()[:12]}"
    return TaskId(name)


def is_pytest(test: str) -> bool:
    """Is it an id of pytest: a file, and what is in it?"""
    file, mark, rest = test.partition("::")
    return bool(mark and rest) and file.endswith(".py") and "\\" not in file


def file_of(test: str) -> str:
    return test.partition("::")[0]


def leaves_commit_open(instance: Instance) -> bool:
    """SWE-smith's rows need not say their commit: the mirror that they are of has but one."""
    return instance.inverted and not instance.base_commit


def commit_in_id(instance: Instance) -> str:
    """What SWE-smith's ids have of the commit: its first 8 digits."""
    return instance.instance_id.rpartition(".")[0].rpartition(".")[2]


def obstacles(instance: Instance, *, tried: bool) -> Iterator[str]:
    """Why it cannot run here, whatever repositories and images there are.

    tried: a trial in a box will tell what ids that were cut stand for.
    """
    if not (_COMMIT.fullmatch(instance.base_commit) or leaves_commit_open(instance)):
        yield f"`base_commit` is {instance.base_commit[:60]!r}, and no commit of 40 hex digits"
    if not instance.problem_statement.strip():
        yield "there is no `problem_statement`: an agent would be told nothing"
    if not instance.patch.strip():
        yield "there is no `patch`: nothing shows that it can be resolved"
    if instance.assets:
        yield f"it needs files that its patches do not hold: {_some(instance.assets)}"
    for key, patch in (("patch", instance.patch), ("test_patch", instance.test_patch)):
        try:
            changes_of(patch)
        except PatchError as e:
            yield f"`{key}` is refused: {e}"
    yield from _tests(instance, tried=tried)


def changes_of(patch: str) -> tuple[Change, ...]:
    """Raises PatchError."""
    return parse(patch.encode(), max_bytes=MOST_PATCH_BYTES)


def _tests(instance: Instance, *, tried: bool) -> Iterator[str]:
    wanted = instance.fail_to_pass
    if not wanted:
        split = f" (its split is `{instance.split}`)" if instance.split else ""
        yield f"`FAIL_TO_PASS` is empty: no test shows that it is resolved{split}"
        return
    if strange := [t for t in wanted if not is_pytest(t)]:
        yield f"its tests are run by {_runner(instance, strange[0])}, and only pytest's are imported: {_some(strange)}"
    elif all(map(ends_open, wanted)) and not tried:
        yield f"every id of `FAIL_TO_PASS` was cut at a space, and --try tells which are meant: {_some(wanted)}"


def _runner(instance: Instance, test: str) -> str:
    """What runs such tests, as far as can be told."""
    if instance.log_parser:
        return f"what `{instance.log_parser}` reads"
    if own := _OF_REPOSITORY.get(instance.repo.lower()):
        return own
    if _UNITTEST.fullmatch(test):
        return "unittest, or a runner of the repository's own"
    if language := instance.language:
        return _OF_LANGUAGE.get(language.lower(), f"a runner for {language}")
    return "a runner of the repository's own"


def _some(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(name[:100] for name in names[:_SHOWN]) + more
