"""Results that programs wrote for programs: every form is read, and nothing in one expands."""

import json

import pytest

from sandbox.formats.logs.sighting import Sighting, Status, UnreadableLog, worst
from sandbox.formats.logs.structured import dotted, read

JUNIT = b"""<?xml version="1.0"?>
<testsuites><testsuite>
<testcase classname="tests.test_a.TestX" name="test_ok[p]"/>
<testcase classname="tests.test_a" name="test_bad"><failure message="x"/></testcase>
<testcase classname="tests.test_a" name="test_err"><error/></testcase>
<testcase classname="tests.test_a" name="test_skip"><skipped/></testcase>
<testcase classname="tests.test_a" name="test_xf"><skipped type="pytest.xfail"/></testcase>
<testcase name="notrun" status="notrun"/>
<testcase name="odd" status="sideways"/>
</testsuite></testsuites>"""


def test_junit_xml_is_read():
    assert worst(read(JUNIT)) == {
        "tests.test_a.TestX.test_ok[p]": Status.PASSED,
        "tests.test_a.test_bad": Status.FAILED,
        "tests.test_a.test_err": Status.ERROR,
        "tests.test_a.test_skip": Status.SKIPPED,
        "tests.test_a.test_xf": Status.XFAIL,
        "notrun": Status.SKIPPED,
        "odd": Status.UNKNOWN,
    }


@pytest.mark.parametrize(
    "document",
    [
        b'<!DOCTYPE a [<!ENTITY x "yyy">]><a>&x;</a>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b"<!DOCTYPE testsuites><testsuites/>",
        b"<a>&x;</a>",
        b"<a" + b"><a" * 200,
        b"<a>" * 200 + b"</a>" * 200,
        b"<testsuites><testcase name='a'/>",
        b"<?xml version='1.0' encoding='nonsense'?><a/>",
        b"\x00<a/>",
        b"",
        b"no results",
        b'{"passed": 3}',
        b'{"tests": [{"outcome": "passed"}]}',
        b'{"tests": [3]}',
        b'{"testResults": [3]}',
        b"[" * 100_000,
    ],
)
def test_what_declares_entities_or_is_broken_is_refused(document: bytes):
    with pytest.raises(UnreadableLog):
        read(document)


@pytest.mark.parametrize(
    ("report", "found"),
    [
        (
            {"results": {"tool": {}, "tests": [{"name": "a", "status": "other"}]}},
            [Sighting("a", Status.UNKNOWN, "other")],
        ),
        (
            {"tests": [{"nodeid": "a.py::t", "outcome": "xfailed"}]},
            [Sighting("a.py::t", Status.XFAIL)],
        ),
        ({"tests": [{"name": "t", "status": "PASSED"}]}, [Sighting("t", Status.PASSED)]),
        (
            {
                "testResults": [
                    {"name": "f", "assertionResults": [{"fullName": "a b", "status": "todo"}]}
                ]
            },
            [Sighting("a b", Status.SKIPPED)],
        ),
        (
            {"passes": [{"fullTitle": "a"}], "failures": [{"fullTitle": "b"}]},
            [Sighting("a", Status.PASSED), Sighting("b", Status.FAILED)],
        ),
        (
            {"examples": [{"full_description": "a", "status": "failed"}]},
            [Sighting("a", Status.FAILED)],
        ),
    ],
)
def test_the_json_of_a_runner_is_read(report: object, found: list[Sighting]):
    assert read(json.dumps(report).encode()) == found


def test_events_a_line_each_are_read():
    go = b'{"Action":"run","Test":"A"}\n{"Action":"pass","Test":"A"}\nnoise\n{"Action":"pass"}\n'
    assert read(go) == [Sighting("A", Status.PASSED)]
    rust = b'{"type":"suite","event":"started"}\n{"type":"test","event":"ok","name":"a::b"}\n'
    assert read(rust) == [Sighting("a::b", Status.PASSED)]


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("tests/test_a.py::TestX::test_b[p/q.py::r]", "tests.test_a.TestX.test_b[p/q.py::r]"),
        ("test_b (tests.test_a.TestX)", "tests.test_a.TestX.test_b"),
        ("test_b (tests.test_a.TestX.test_b)", "tests.test_a.TestX.test_b"),
        ("a.B > c", "a.B.c"),
    ],
)
def test_one_test_has_one_dotted_name(test: str, name: str):
    assert dotted(test) == name
