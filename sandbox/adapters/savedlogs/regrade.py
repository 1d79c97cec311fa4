"""A saved log becomes a verdict: no box, no image, nothing but the text and the data set."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.adapters.savedlogs.doubt import Doubt, Flag
from sandbox.adapters.savedlogs.folder import (
    Odd,
    SavedLog,
    TooLarge,
    find_logs,
    read_file,
)
from sandbox.adapters.savedlogs.reading import Asked, Reading, read, renamed
from sandbox.adapters.savedlogs.region import Region, edition_of, region_of, suite_ran
from sandbox.adapters.savedlogs.rule import Decision, Expected, decide, decide_results
from sandbox.errors import UserError
from sandbox.formats import jsonfile
from sandbox.formats.logs import structured
from sandbox.formats.logs.browser import ANSI
from sandbox.formats.logs.causes import cause_of
from sandbox.formats.logs.sighting import Edition, Parser, Setting, Sighting, UnreadableLog
from sandbox.formats.logs.table import PARSERS, PYTHON, parser_name
from sandbox.formats.swebench import Instance, Refused, read_dataset
from sandbox.formats.swebenchreport import Result, folder_names, instance_report, run_report

_FAIL_ONLY = ("chartjs/chart.js", "processing/p5.js", "markedjs/marked")
"""Of whose logs 3.x and 4.x read failures only; later data sets say it themselves."""
_UNREADABLE = (TooLarge, UnreadableLog, UserError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regraded:
    """The verdict on one log."""

    instance_id: str
    result: Result
    """As published: by the rule of the edition."""
    ours: bool = False
    """Would we say that it is resolved?"""
    edition: str = ""
    parser: str = ""
    resolution: str = "no"
    run: str = ""
    """Which log of the instance, where there are several."""
    flags: tuple[Flag, ...] = ()

    @property
    def resolved(self) -> bool:
        return self.result.state == "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegradedAll:
    logs: tuple[Regraded, ...]
    odd: tuple[Odd, ...]
    """Files that belong to no instance, or to one that has another log already."""
    refused: tuple[Refused, ...]
    """Rows of the data set that could not be read."""
    missing: tuple[str, ...]
    """Instances without a log."""
    instances: tuple[str, ...] = ()
    """All that the data set has."""


def regrade_all(folder: Path, dataset: Path, edition: Edition | None = None) -> RegradedAll:
    """edition: the rule to grade by; None: the one each log was made under.

    Raises UserError for what is no folder or no data set, and where nothing of it is there.
    """
    data = read_dataset(dataset)
    instances = {i.instance_id: i for i in data.instances}
    found = find_logs(folder, instances.keys())
    logs = tuple(regrade(log, instances[log.instance_id], edition) for log in found.logs)
    if instances and not logs and not found.odd:
        raise UserError(
            f"{folder} has no log of the {len(instances)} in {dataset}",
            hint="a log is INSTANCE_ID/test_output.txt, at any depth, or INSTANCE_ID.log",
        )
    seen = {log.instance_id for log in logs} | {odd.instance_id for odd in found.odd}
    return RegradedAll(
        logs=logs,
        odd=found.odd,
        refused=data.refused,
        missing=tuple(i for i in instances if i not in seen),
        instances=tuple(instances),
    )


def regrade(log: SavedLog, instance: Instance, edition: Edition | None = None) -> Regraded:
    """Raises UserError for a file that cannot be read."""
    expected = Expected(
        fail_to_pass=instance.fail_to_pass,
        pass_to_pass=instance.pass_to_pass,
        fail_only=instance.eval_type == "fail_only"
        or (not instance.eval_type and instance.repo.lower() in _FAIL_ONLY),
    )
    name = parser_name(
        named=instance.log_parser,
        repository=instance.repo,
        language=instance.language or ("python" if instance.shape == "smith" else ""),
    )
    failed = Result(instance_id=instance.instance_id, state="error")
    graded = Regraded(
        instance_id=instance.instance_id, result=failed, parser=name or "", run=log.run
    )
    by_text = None
    try:
        by_text = _by_text(graded, log.path, instance, expected, edition) if log.path else None
    except _UNREADABLE as e:
        if not log.results:
            return replace(graded, result=replace(failed, why=str(e)))
    try:
        if log.results:
            return _by_results(graded, log.results, instance, expected, by_text)
    except _UNREADABLE as e:
        return replace(graded, result=replace(failed, why=str(e)))
    return by_text or graded


def _by_text(
    graded: Regraded, path: Path, instance: Instance, expected: Expected, edition: Edition | None
) -> Regraded:
    if not graded.parser:
        raise UserError(
            f"nobody knows how to read the log: of `{instance.log_parser or instance.repo}`"
        )
    text, flags = _decoded(read_file(path))
    published = _lines_as_published(text)
    failed = replace(graded.result, cause=cause_of(published))
    graded = replace(graded, result=failed)
    fifth = instance.shape in ("5.x", "repository")
    edition = edition or edition_of(text, fifth=fifth, python=graded.parser in PYTHON)
    setting = Setting(edition=edition, instance=instance.instance_id, version=instance.version)
    graded = replace(graded, edition=edition.value)
    region = region_of(published, edition)
    reading = Reading()
    if not region.why_not:
        reading, region = _read(region, PARSERS[graded.parser], setting, expected.asked)
        flags += _of_characters(text, reading, graded.parser, setting, expected)
    flags += region.flags
    if region.why_not:
        failed = replace(failed, why=region.why_not)
        return replace(graded, result=failed, flags=tuple(flags))
    decision = decide(reading, expected, edition)
    doubted = any(f.doubt in (Doubt.MARKERS, Doubt.EXIT_CODE) for f in flags)
    return _verdict(graded, decision, flags, ours=decision.ours and not doubted)


def _read(region: Region, parser: Parser, setting: Setting, asked: Asked) -> tuple[Reading, Region]:
    """Also, as the edition has it: no results between the marks, and what the exit code says."""
    flags = list(region.flags)
    reading = read(_sightings(region.text, parser, setting), asked)
    if reading.empty and region.fallback:
        reading = read(_sightings(region.fallback, parser, setting), asked)
        flags += [] if reading.empty else [Flag(doubt=Doubt.OUTSIDE)]
    why_not = ""
    if region.exit_code and not reading.empty and not reading.fails:
        flags.append(Flag(doubt=Doubt.EXIT_CODE))
        if setting.edition is Edition.V5:
            why_not = f"the tests ended with {region.exit_code}, and the log tells of no failure"
    if setting.edition is Edition.V5 and reading.empty and not suite_ran(region.fallback):
        why_not = "the log has no results, and no sign that the tests ran"
    return reading, replace(region, why_not=why_not, flags=tuple(flags))


def _sightings(text: str, parser: Parser, setting: Setting) -> Iterator[Sighting]:
    """Also what only stands there once colours are taken away: published rules pass over much of it."""
    yield from parser(text, setting)
    if "\x1b" in text:
        for one in parser(ANSI.sub("", text), setting):
            yield replace(one, counted=False)


def _by_results(
    graded: Regraded,
    files: Iterable[Path],
    instance: Instance,
    expected: Expected,
    by_text: Regraded | None,
) -> Regraded:
    """What a program wrote for programs wins over what it printed."""
    found = [one for path in files for one in _results(path)]
    reading = read(renamed(found, expected.asked), expected.asked)
    # Of a test that was run again, the report has both ends: the worse one stays.
    reading.last = {t: replace(one, status=reading.worst[t]) for t, one in reading.last.items()}
    decision = decide_results(reading, expected, only_passed=instance.shape == "pro")
    verdict = _verdict(graded, decision, [], ours=decision.ours)
    if by_text and by_text.resolved != verdict.resolved:
        verdict = replace(verdict, flags=(*verdict.flags, Flag(doubt=Doubt.STRUCTURED)))
    return replace(verdict, edition="results")


def _results(path: Path) -> list[Sighting]:
    try:
        return structured.read(read_file(path))
    except UnreadableLog as e:
        raise UnreadableLog(f"{path.name}: {e}") from None


def _verdict(graded: Regraded, decision: Decision, flags: list[Flag], *, ours: bool) -> Regraded:
    full = decision.resolution == "full"
    failing = {name: tests.failure for name, tests in decision.tests.items() if tests.failure}
    return replace(
        graded,
        result=Result(
            instance_id=graded.instance_id,
            state="resolved" if full else "unresolved",
            why=_why(failing),
            tests=decision.tests,
            cause=graded.result.cause,
        ),
        ours=ours,
        resolution=decision.resolution,
        flags=(*flags, *decision.flags),
    )


def _why(failing: Mapping[str, tuple[str, ...]]) -> str:
    return "; ".join(f"{len(tests)} of {name} failed" for name, tests in failing.items())


def _decoded(raw: bytes) -> tuple[str, list[Flag]]:
    try:
        return raw.decode("utf-8"), []
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), [Flag(doubt=Doubt.NOT_UTF8)]


def _lines_as_published(text: str) -> str:
    r"""Files were opened as text: \r\n and a lone \r each end a line."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _of_characters(
    text: str, reading: Reading, parser: str, setting: Setting, expected: Expected
) -> list[Flag]:
    flags = [Flag(doubt=Doubt.NUL)] if "\0" in text else []
    plain = text.replace("\r\n", "\n")
    if "\r" in plain:
        region = region_of(plain, setting.edition)
        other, _ = _read(region, PARSERS[parser], setting, expected.asked)
        if other.told != reading.told:
            flags.append(Flag(doubt=Doubt.CARRIAGE_RETURN))
    return flags


def write_reports(found: RegradedAll, out: Path) -> Path:
    """<id>/report.json for each, and report.json of all; returns that one.

    Where an instance has several logs, that much in a folder for each run; returns what they lie in.
    """
    names = folder_names(sorted({log.run for log in found.logs}))
    if len(names) < 2:
        return _write_run(found.logs, found, out)
    for run, name in names.items():
        _write_run([log for log in found.logs if log.run == run], found, out / name)
    return out


def _write_run(logs: Iterable[Regraded], found: RegradedAll, out: Path) -> Path:
    results = [log.result for log in logs]
    for result in results:
        _write(out / result.instance_id / "report.json", instance_report(result))
    _write(out / "report.json", run_report(results, found.instances))
    return out / "report.json"


def _write(path: Path, data: dict[str, object]) -> None:
    jsonfile.write(path, jsonfile.dumps(data))
