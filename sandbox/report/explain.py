"""Why a reward is what it is, in words, for eighty columns. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from textwrap import wrap

from sandbox.formats.controls import printable
from sandbox.report.story import Ended, Sight, Story, Told

COLUMNS = 80
_MESSAGE_LINES, _FULL, _NAMED = 6, 3, 8
_FLAGS = {
    "forged": "a check passed with an expectation that nothing right meets: its outcome does not "
    "depend on what is expected, so none of the outcomes can be believed",
    "test-dependent": "what the tests saw is not what is there without the test runner: the "
    "submission is right only while it is tested",
    "unproved": "the evidence lacks a run on which a full reward of this task rests",
}

_GUESSED = "a wrong answer may be what one expects; where there are many, something guesses which box it is in"


def tell(story: Story, only: Sequence[str] = ()) -> list[str]:
    """only: ids or patterns of checks to be told in full; without, those that count for nothing."""
    lines = [*_head(story), *_doubtful(story)]
    if story.reward is None:
        return [*lines, *_void(story)]
    lines += ["", "Boxes", *_boxes(story)]
    lines += ["", "Checks", *_checks(story, only)]
    lines += ["", "Reward", *(line for s in story.sum for line in _para(s))]
    for flag in story.flags:
        lines += _para(f"{flag}: {_FLAGS.get(flag, '')}")
    if story.reason:
        lines += _para(f"in short: {story.reason}")
    return lines


def matching(story: Story, only: Sequence[str]) -> list[Told]:
    return [c for c in story.checks if any(c.id == o or fnmatchcase(c.id, o) for o in only)]


def _head(story: Story) -> Iterator[str]:
    r = story.rollout
    word = "void" if story.reward is None else "resolved" if story.resolved else "not resolved"
    said = "no reward" if story.reward is None else f"reward {story.reward:g}"
    flags = f" ({', '.join(story.flags)})" if story.flags else ""
    yield printable(f"{r.task}, attempt {r.attempt}: {word}, {said}{flags}")
    ending = r.ending.value.replace("_", " ") if r.ending else "before it was over"
    yield from _para(f"agent {r.agent or '(unnamed)'}, runtime {r.runtime}, {r.started}")
    yield from _para(f"ended: {ending}, after {r.steps} steps")
    yield from _para(f"submission: {r.patch_bytes} bytes, sha256 {r.patch_sha256[:16] or '-'}")
    if story.outside:
        named = ", ".join(story.outside[:_NAMED]) + (" …" if len(story.outside) > _NAMED else "")
        count = len(story.outside)
        yield from _para(f"left out of it, since the task does not declare it: {named} ({count})")
    if r.warning:
        yield from _para(f"warning: {r.warning}")


def _doubtful(story: Story) -> Iterator[str]:
    for doubt in story.doubts:
        yield from _para(f"CAREFUL: {doubt}")


def _void(story: Story) -> Iterator[str]:
    yield ""
    yield from _para(f"void: {story.reason}")
    if story.fault:
        if story.fault.hint:
            yield from _para(f"hint: {story.fault.hint}")
        again = "a second try makes sense" if story.fault.retry else "a second try changes nothing"
        yield from _para(f"what broke is ours, not the submission: it is no 0, and {again}")


def _boxes(story: Story) -> Iterator[str]:
    for box in story.boxes:
        yield from _para(_ended(box))
    if story.further:
        pairs = f"{story.further} further pair{'s' if story.further > 1 else ''}"
        yield from _para(f"{pairs} of boxes: the reward rests on few units, so they ran again")
    if story.plain:
        yield from _para(f"plain: {story.plain}")
    for said in story.plain_says[:_NAMED]:
        yield from _para(f"plain: {said}", 4)
    if (more := len(story.plain_says) - _NAMED) > 0:
        yield from _para(f"plain: {more} more of these", 4)


def _ended(box: Ended) -> str:
    detail = f": {box.detail}" if box.detail else ""
    return f"{box.box}: {box.ran}{detail}; {box.reports} reports in {box.seconds:g} s"


def _checks(story: Story, only: Sequence[str]) -> Iterator[str]:
    chosen = matching(story, only) if only else [c for c in story.checks if not c.credited]
    if not only and len(chosen) == len(story.checks) and not any(c.sights for c in chosen):
        yield from _para(f"all {len(chosen)} missing: nothing was run")
        return
    if not only:
        yield from _credited([c for c in story.checks if c.credited])
    alike: Counter[tuple[object, ...]] = Counter()
    left: list[Told] = []
    for check in chosen:
        kind = (check.outcome, check.note, tuple((s.form, s.outcome) for s in check.sights))
        alike[kind] += 1
        if only or alike[kind] <= _FULL:
            yield from _full(check)
        else:
            left.append(check)
    if alone := sum(map(_alone, story.checks)):
        yield from _para(f"{alone} passed as a canary only: {_GUESSED}")
    if left:
        yield from _para(f"and {len(left)} more that ended like one of these:")
        yield from (line for c in left[:_NAMED] for line in _para(c.id, 4))
        if len(left) > _NAMED:
            yield from _para("… (--check NAME tells of one, --json of all)", 4)


def _alone(check: Told) -> bool:
    """Did its canary pass, and the test did not?"""
    ended = {s.form: s.outcome for s in check.sights if s.pair == 1}
    return ended.get("as a canary") == "passed" != ended.get("as it is")


def _credited(checks: Sequence[Told]) -> Iterator[str]:
    if not checks:
        return
    proved = sum(any(s.form == "as a canary" for s in c.sights) for c in checks)
    words = f"{len(checks)} count"
    if proved:
        words += f"; {proved} of them have a canary, and it failed as it must"
        if lacking := [c for c in checks if c.canary]:
            words += f"; {len(lacking)} have none"
    yield from _para(words)
    yield from (line for c in checks if c.note for line in _para(f"{c.id}: {c.note}", 4))


def _full(check: Told) -> Iterator[str]:
    kind = "gate" if check.gate else f"weight {check.weight:g}"
    word = "counts" if check.credited else "does not count"
    yield from _para(f"{check.id}: {check.outcome}, {word} ({kind})")
    for sight in check.sights:
        yield from _sight(sight)
    if check.canary:
        yield from _para(f"no canary: {check.canary}", 6)
    for said in check.plain:
        yield from _para(f"without the test runner: {said}", 6)
    if check.note:
        yield from _para(f"because {check.note}", 6)


def _box(sight: Sight) -> str:
    box, _, pair = sight.box.partition(" ")
    return f"{box} box {pair}".rstrip()


def _sight(sight: Sight) -> Iterator[str]:
    place = "" if sight.box == "only" else f", in the {_box(sight)}"
    meant = " (as it must)" if (sight.form, sight.outcome) == ("as a canary", "failed") else ""
    yield from _para(f"{sight.form}{place}: {sight.outcome}{meant}", 6)
    if meant:
        return
    lines = sight.message.strip().splitlines()
    for line in lines[:_MESSAGE_LINES]:
        yield from _para(f"| {line}", 8)
    if len(lines) > _MESSAGE_LINES:
        yield from _para(f"| … {len(lines) - _MESSAGE_LINES} more lines in evidence.json", 8)


def _para(text: str, indent: int = 2) -> list[str]:
    """What tests and agents said is in it: nothing in it may be obeyed by a terminal."""
    space = " " * indent
    return wrap(
        printable(text.replace("\t", "    ")),
        COLUMNS,
        initial_indent=space,
        subsequent_indent=space + "  ",
        break_on_hyphens=False,
    ) or [space.rstrip()]
