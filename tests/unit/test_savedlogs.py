"""Saved evaluation logs: the published verdict, and every doubt about it by name."""

import json
import os
from pathlib import Path

import pytest

from sandbox.adapters.savedlogs.doubt import Doubt
from sandbox.adapters.savedlogs.folder import MOST_BYTES, SavedLog
from sandbox.adapters.savedlogs.regrade import Regraded, regrade, regrade_all, write_reports
from sandbox.cli import main
from sandbox.errors import UserError
from sandbox.formats.logs.sighting import Edition
from sandbox.formats.swebenchinstance import Instance, Shape
from sandbox.formats.swebenchreport import instance_report, run_report

SAMPLE = Path(__file__).parents[1] / "data" / "swebench-logs"
START, END = ">>>>> Start Test Output", ">>>>> End Test Output"
WANTED, KEPT = "a.py::new", "a.py::old"
GOOD = f"PASSED {WANTED}\nPASSED {KEPT}\n"


def instance(
    shape: Shape = "5.x",
    wanted: tuple[str, ...] = (WANTED,),
    kept: tuple[str, ...] = (KEPT,),
    parser: str = "parse_log_pytest",
    kind: str = "",
) -> Instance:
    return Instance(
        instance_id="o__r-1", repo="o/r", shape=shape, where="x:1", fail_to_pass=wanted,
        pass_to_pass=kept, log_parser=parser, eval_type=kind,
    )  # fmt: skip


@pytest.fixture
def graded(tmp_path: Path):
    def grade(text: str | bytes, of: Instance | None = None, **files: str | bytes) -> Regraded:
        path = tmp_path / "test_output.txt"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        results = []
        for name, content in files.items():
            results.append(tmp_path / name)
            results[-1].write_bytes(content.encode() if isinstance(content, str) else content)
        log = SavedLog(instance_id="o__r-1", path=path, results=tuple(results))
        return regrade(log, of or instance())

    return grade


def output(inside: str, code: int | None = None, before: str = "", after: str = "") -> str:
    told = f">>>>> Test Exit Code: {code}\n" if code is not None else ""
    return f"{before}\n+ : '{START}'\n{inside}\n+ : '{END}'\n{told}{after}"


def doubts(log: Regraded) -> list[Doubt]:
    return [flag.doubt for flag in log.flags]


def test_every_published_verdict_of_a_real_run_comes_out_again():
    published = set(json.loads((SAMPLE / "published.json").read_text())["resolved"])
    found = regrade_all(SAMPLE / "logs", SAMPLE / "instances.jsonl")
    assert (len(found.logs), found.odd, found.refused, found.missing) == (18, (), (), ())
    assert {log.instance_id for log in found.logs if log.resolved} == published
    assert {log.edition for log in found.logs} == {"1"}


def test_where_the_run_s_verdict_is_not_ours_the_log_contradicts_itself():
    found = regrade_all(SAMPLE / "logs", SAMPLE / "instances.jsonl")
    unlike = [log for log in found.logs if log.ours != log.resolved]
    assert [log.instance_id for log in unlike] == ["pytest-dev__pytest-5227"]
    assert Doubt.CONTRADICTION in doubts(unlike[0])  # its data set takes `[100%]` for a test


def test_a_clean_log_is_resolved_without_a_doubt(graded):
    log = graded(output(GOOD, 0))
    assert (log.resolved, log.ours, log.edition, log.flags) == (True, True, "5", ())


@pytest.mark.parametrize(
    ("inside", "resolution"),
    [
        (f"FAILED {WANTED} - x\nPASSED {KEPT}", "no"),
        (f"PASSED {WANTED}", "no"),
        (f"SKIPPED {WANTED}\nPASSED {KEPT}", "no"),
        (f"XFAIL {WANTED}\nSKIPPED {KEPT}", "full"),
        (f"PASSED {WANTED}\nERROR {KEPT}", "no"),
    ],
)
def test_the_fifth_edition_counts_statuses_so(graded, inside: str, resolution: str):
    assert graded(output(inside, 1 if "FAILED" in inside else 0)).resolution == resolution


def test_some_of_what_should_pass_is_partial(graded):
    of = instance(wanted=(WANTED, "a.py::more"))
    assert graded(output(GOOD + "FAILED a.py::more"), of).resolution == "partial"


def test_a_status_the_published_rule_drops_is_not_dropped_by_ours(graded):
    log = graded(output(f"ERROR: {WANTED}\nPASSED {KEPT}", 0))
    assert log.resolved  # nothing is left to ask for
    assert not log.ours
    assert Doubt.DROPPED in doubts(log)
    log = graded(output(f"SKIPPED {WANTED}\nPASSED {KEPT}"), instance("4.x"))
    assert (log.edition, log.resolved, log.ours) == ("4", True, False)
    assert Doubt.DROPPED in doubts(log)


def test_a_line_forged_after_the_real_one_wins_as_published_and_not_with_us(graded):
    log = graded(output(f"FAILED {WANTED} - x\nFAILED b.py::t\n{GOOD}", 1))
    assert (log.resolved, log.ours) == (True, False)
    assert Doubt.CONTRADICTION in doubts(log)
    log = graded(output(f"PASSED {WANTED}\nPASSED {KEPT}\nFAILED {WANTED} - x", 1))
    assert (log.resolved, log.ours) == (False, False)
    assert Doubt.CONTRADICTION in doubts(log)


@pytest.mark.parametrize(
    ("parser", "line", "test"),
    [
        ("pytest", "\x1b[31mFAILED\x1b[0m a.py::\x1b[1mnew\x1b[0m - x", WANTED),
        ("gotest", "\x1b[31m--- FAIL: TestA (0.00s)\x1b[0m", "TestA"),
        ("cargo", "test a::b ... \x1b[31mFAILED\x1b[m", "a::b"),
        ("jest", "  \x1b[31m\N{MULTIPLICATION X}\x1b[39m adds (3 ms)", "adds"),
    ],
)
def test_a_failure_in_colour_is_seen(graded, parser: str, line: str, test: str):
    good = {"gotest": f"--- PASS: {test} (0s)", "cargo": f"test {test} ... ok", "jest": f"✓ {test}"}
    plain = good.get(parser, f"PASSED {test}")
    log = graded(output(f"{line}\n{plain}"), instance("4.x", (test,), (), parser))
    assert (log.resolved, log.ours) == (True, False)
    assert Doubt.CONTRADICTION in doubts(log)


@pytest.mark.parametrize(
    ("line", "cause", "kind"),
    [
        ("Error: Failed to launch the browser process!", "browser_launch_failed", "infra"),
        ("xterm: cannot open display: :0", "display_unavailable", "infra"),
        ("Killed", "out_of_memory", "infra"),
        ("Error response from daemon: no such container", "container_unavailable", "infra"),
        ("curl: (6) Could not resolve host: x.org", "network_unreachable", "infra"),
        ("ModuleNotFoundError: No module named 'x'", "missing_module", "ambiguous"),
        ("collected 0 items", "no_tests_collected", "ambiguous"),
        ("Timeout error: 1800 seconds exceeded.", "tests_timed_out", "ambiguous"),
    ],
)
def test_what_of_the_machine_may_have_failed_is_told_and_changes_no_verdict(
    graded, line: str, cause: str, kind: str
):
    lost = graded(line)
    report = instance_report(lost.result)["o__r-1"]
    assert (report["infra_failure"], report["infra_failure_reason"]) == (kind == "infra", cause)
    failed = graded(output(f"{line}\nFAILED {WANTED}\nPASSED {KEPT}", 1))
    assert "infra_failure_reason" not in instance_report(failed.result)["o__r-1"]
    for log in (lost, failed):
        told = run_report([log.result], ["o__r-1"])
        assert told["infra_failure_instances"] + told["ambiguous_failure_instances"] == 1
        assert told[f"{kind}_failure_ids"] == ["o__r-1"]
        assert told["failure_reasons"] == {"o__r-1": cause}
        assert told["resolved_ids"] == []
    assert graded(output(f"{line}\n{GOOD}", 0)).resolved


def test_progress_that_contradicts_the_summary_is_seen(graded):
    log = graded(output(f"{WANTED} FAILED [ 50%]\n{GOOD}", 0))
    assert (log.resolved, log.ours) == (True, False)


def test_marks_that_tests_print_are_named(graded):
    forged = f"{START}\n{GOOD}\n{END}\n"
    real = f"FAILED {WANTED} - x\nPASSED {KEPT}"
    log = graded(output(real, before=forged))
    assert (log.resolved, log.ours) == (True, False)
    assert Doubt.MARKERS in doubts(log)
    assert not graded(output(real, 1, before=forged)).resolved  # the exit code tells
    log = graded(output(f"{GOOD}>>>>> Patch Apply Failed\n", 0))
    assert (log.result.state, Doubt.FAILURE_MARK in doubts(log)) == ("error", True)


def test_results_outside_the_marks_count_where_there_are_none_inside(graded):
    log = graded(output("", after=GOOD))
    assert log.resolved
    assert Doubt.OUTSIDE in doubts(log)


def test_an_exit_code_that_nothing_explains_refuses_the_log(graded):
    log = graded(output(GOOD, 1))
    assert (log.result.state, log.ours) == ("error", False)
    assert Doubt.EXIT_CODE in doubts(log)
    assert "ended with 1" in log.result.why


def test_a_log_without_results_is_no_verdict_of_tests(graded):
    assert "no sign that the tests ran" in graded(output("")).result.why
    assert graded("killed").result.state == "error"


def test_of_failures_only_what_is_absent_passed_if_the_tests_ran(graded):
    of = instance(parser="parse_log_marked", kind="fail_only")
    log = graded(output("3 specs, 0 failures"), of)
    assert (log.resolved, doubts(log)) == (True, [Doubt.ABSENT_PASSES])
    assert not graded(output("0 specs, 0 failures"), of).resolved


def test_a_cut_id_is_matched_as_far_as_it_goes_and_flagged(graded):
    of = instance(wanted=("a.py::t[x",), parser="parse_log_pytest_v2")
    both = f"PASSED a.py::t[x 1]\nPASSED a.py::t[x 2]\nPASSED {KEPT}"
    log = graded(output(both), of)
    assert (log.resolved, log.ours, doubts(log)) == (True, True, [Doubt.CUT_ID])
    log = graded(output(both.replace("PASSED a.py::t[x 2]", "FAILED a.py::t[x 2]")), of)
    assert (log.resolved, log.ours) == (False, False)
    assert Doubt.CUT_ID_DISAGREES in doubts(log)


def test_characters_that_hide_or_break_lines_are_flagged(graded):
    log = graded(output(f"x\rPASSED {WANTED}\nPASSED {KEPT}", 0))
    assert (log.resolved, doubts(log)) == (True, [Doubt.CARRIAGE_RETURN])
    log = graded(output(GOOD.replace("\n", "\r\n"), 0).encode() + b"\xff\x00")
    assert (log.resolved, set(doubts(log))) == (True, {Doubt.NOT_UTF8, Doubt.NUL})


def test_a_log_larger_than_tests_have_reason_to_print_is_refused_by_name(graded, tmp_path: Path):
    path = tmp_path / "large.txt"
    path.touch()
    os.truncate(path, 1 << 30)
    log = regrade(SavedLog(instance_id="o__r-1", path=path), instance())
    assert log.result.state == "error"
    assert f"larger than {MOST_BYTES >> 20} MiB" in log.result.why


def test_a_pipe_in_the_place_of_a_log_does_not_hold_us(tmp_path: Path):
    os.mkfifo(tmp_path / "o__r-1.log")
    log = regrade(SavedLog(instance_id="o__r-1", path=tmp_path / "o__r-1.log"), instance())
    assert "no regular file" in log.result.why


def test_a_log_that_nobody_can_read_is_named(graded):
    log = graded(output(GOOD), instance("4.x", parser=""))
    assert "nobody knows how to read the log" in log.result.why


def test_a_file_of_results_wins_over_the_text(graded):
    junit = (
        '<testsuite><testcase classname="a" name="new"><failure/></testcase>'
        '<testcase classname="a" name="old"/></testsuite>'
    )
    log = graded(output(GOOD, 0), **{"junit.xml": junit})
    assert (log.resolved, log.ours, log.edition) == (False, False, "results")
    assert Doubt.STRUCTURED in doubts(log)
    ctrf = json.dumps({"results": {"tests": [
        {"name": WANTED, "status": "passed"}, {"name": KEPT, "status": "skipped"},
    ]}})  # fmt: skip
    assert graded("no marks", **{"ctrf.json": ctrf}).resolved
    assert not graded("no marks", instance("pro"), **{"ctrf.json": ctrf}).resolved
    assert "broken XML" in graded(output(GOOD, 0), **{"junit.xml": "<a>"}).result.why


def test_ten_thousand_forged_names_are_not_kept(graded):
    flood = "".join(f"PASSED x{i}\n" for i in range(10_000))
    log = graded(output(flood + GOOD, 0))
    assert (log.resolved, log.ours) == (True, True)


def test_a_first_edition_log_is_known_by_its_header(graded):
    text = (
        "[tb] [o__r-1] Task Metadata:\n>>>>> Applied Patch (pred_try)\n"
        f">>>>> Applied Patch (pred)\n>>>>> Applied Patch (test)\n{GOOD}\n{START}\n"
    )
    assert graded(text, instance("4.x")).edition == "1"
    assert graded(text, instance("4.x")).resolved
    assert graded(text.replace("(test)", "(pred)"), instance("4.x")).result.state == "error"
    assert graded(f"Applied patch x cleanly.\n{GOOD}", instance("4.x")).edition == "2"


def test_the_rule_of_another_edition_can_be_asked_for(tmp_path: Path):
    path = tmp_path / "o__r-1.log"
    path.write_text(output(f"SKIPPED {WANTED}\nPASSED {KEPT}"))
    log = SavedLog(instance_id="o__r-1", path=path)
    of = instance("4.x")
    assert [regrade(log, of, e).resolved for e in (Edition.V4, Edition.V5)] == [True, False]


def folder_of(tmp_path: Path) -> tuple[Path, Path]:
    data = tmp_path / "data.jsonl"
    rows = [
        {"instance_id": f"o__r-{n}", "repo": "pallets/flask", "base_commit": "0" * 40,
         "FAIL_TO_PASS": json.dumps([WANTED]), "PASS_TO_PASS": json.dumps([KEPT])}
        for n in (1, 2, 3, 4)
    ]  # fmt: skip
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    logs = tmp_path / "logs"
    for name, text in {
        "run/model/o__r-1/test_output.txt": output(GOOD),
        "o__r-2.gpt-4.1.eval.log": output("FAILED a.py::new - x"),
        "o__r-3.log": output(GOOD),
        "o__r-3.txt": output(GOOD),
        "o__other-9.m.eval.log": output(GOOD),
        "run/model/o__r-1/run_instance.log": "not a log of tests",
    }.items():
        (logs / name).parent.mkdir(parents=True, exist_ok=True)
        (logs / name).write_text(text)
    (logs / "o__r-4.log").symlink_to("/etc/passwd")
    return logs, data


def test_logs_are_found_under_the_names_that_harnesses_give_them(tmp_path: Path):
    logs, data = folder_of(tmp_path)
    found = regrade_all(logs, data)
    assert {log.instance_id: log.result.state for log in found.logs} == {
        "o__r-1": "resolved",
        "o__r-2": "unresolved",
        "o__r-4": "error",  # a link is not followed
    }
    assert [odd.instance_id for odd in found.odd] == ["", "o__r-3"]
    assert found.missing == ()
    with pytest.raises(UserError, match="is no folder"):
        regrade_all(data, data)


def test_a_folder_without_any_log_of_the_data_set_is_no_result(tmp_path: Path):
    _, data = folder_of(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(UserError, match="has no log of the 4"):
        regrade_all(tmp_path / "elsewhere", data)


def test_reports_are_those_of_other_tools(tmp_path: Path):
    logs, data = folder_of(tmp_path)
    report = json.loads(write_reports(regrade_all(logs, data), tmp_path / "out").read_text())
    assert report["resolved_ids"] == ["o__r-1"]
    one = json.loads((tmp_path / "out/o__r-2/report.json").read_text())["o__r-2"]
    assert one["tests_status"]["FAIL_TO_PASS"] == {"success": [], "failure": [WANTED]}


def test_the_command_prints_verdicts_and_says_what_it_did_not_grade(tmp_path: Path, capsys):
    logs, data = folder_of(tmp_path)
    assert main(["grade", "--logs", str(logs), "--dataset", str(data), "--json"]) == 2
    printed = capsys.readouterr()
    *rows, summary = map(json.loads, printed.out.splitlines())
    assert [row["resolved"] for row in rows] == [True, False, False]
    assert summary["summary"] == {"logs": 3, "resolved": 1, "ours": 1, "missing": 0}
    assert "more than one log" in printed.err
    assert main(["grade", "--logs", str(SAMPLE / "logs"), "--dataset", str(data)]) == 2
    assert "no instance of the data set has this name" in capsys.readouterr().err
    assert main(["grade", "--logs", str(logs)]) == 2


def test_every_flag_is_explained():
    page = (Path(__file__).parents[2] / "docs/reference/saved-logs.md").read_text()
    assert [doubt for doubt in Doubt if f"| `{doubt}` |" not in page] == []
