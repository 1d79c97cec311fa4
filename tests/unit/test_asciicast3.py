"""Recordings as v3, and as v2 again: the same events at the same times."""

from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import SpecError
from sandbox.formats.asciicast import Event, Header, Recording, read_cast
from sandbox.formats.asciicast3 import lines2, lines3, read3, text

HEADER = Header(
    width=80,
    height=24,
    timestamp=1_000_000_000,
    title="t",
    env=MappingProxyType({"TERM": "xterm", "SHELL": "/bin/bash"}),
)
recordings = st.lists(
    st.tuples(
        st.integers(0, 10**9),
        st.sampled_from("oirm"),
        st.text(st.characters(codec="utf-8"), max_size=5),
    ),
    max_size=20,
).map(
    lambda events: Recording(
        header=HEADER,
        events=tuple(
            Event(micros / 1_000_000, code, data) for micros, code, data in sorted(events)
        ),
    )
)


def test_it_says_how_long_after_the_one_before():
    events = (Event(0.5, "m", "ls"), Event(0.75, "o", "a\r\n\x1b[m\x00ü"), Event(0.75, "r", "9x9"))
    assert text(lines3(Recording(header=HEADER, events=events), 3)) == (
        '{"version": 3, "term": {"cols": 80, "rows": 24, "type": "xterm"},'
        ' "timestamp": 1000000000, "title": "t", "env": {"SHELL": "/bin/bash"}}\n'
        '[0.500000, "m", "ls"]\n'
        '[0.250000, "o", "a\\r\\n\\u001b[m\\u0000ü"]\n'
        '[0.000000, "r", "9x9"]\n'
        '[0.000000, "x", "3"]\n'
    )


@given(recordings)
def test_both_versions_hold_the_same(tmp_path_factory, recording: Recording):
    folder = tmp_path_factory.mktemp("casts")
    (folder / "2").write_text(text(lines2(recording)), encoding="utf-8")
    (folder / "3").write_text(text(lines3(recording)), encoding="utf-8")
    assert read_cast(folder / "2") == read3(folder / "3") == recording


def test_ten_thousand_short_events_do_not_drift(tmp_path: Path):
    events = tuple(Event(round(n / 3, 6), "o", "x") for n in range(10_000))
    (tmp_path / "3").write_text(text(lines3(Recording(header=HEADER, events=events))))
    assert read3(tmp_path / "3").events == events


def test_half_characters_stand_as_escapes(tmp_path: Path):
    recording = Recording(header=HEADER, events=(Event(0.0, "o", "\udcff\ud800"),))
    for lines in (lines2, lines3):
        assert "\\\\xff\\\\ud800" in text(lines(recording))


def test_comments_are_passed_over(tmp_path: Path):
    whole = text(lines3(Recording(header=HEADER, events=(Event(1.0, "o", "x"),))))
    (tmp_path / "3").write_text(whole.replace("\n", "\n# note\n\n", 1))
    assert read3(tmp_path / "3").events == (Event(1.0, "o", "x"),)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("", "an empty recording"),
        ("# note\n", ":1: not valid JSON"),
        ('{"version": 2, "width": 1, "height": 1}\n', "no header of an asciicast v3"),
        ('{"version": 3, "term": {"cols": -1, "rows": 1}}\n', "no header"),
        ('{"version": 3, "term": {"cols": true, "rows": 1}}\n', "no header"),
        ('{"version": 3, "term": {"cols": 1, "rows": 1}}\n[-1, "o", ""]\n', ":2: an event should"),
        ('{"version": 3, "term": {"cols": 1, "rows": 1}}\n[0, "o"]\n', ":2: an event should"),
        ('{"version": 3, "term": {"cols": 1, "rows": 1}}\n[0, "o", "\n', ":2: not valid JSON"),
    ],
)
def test_what_is_no_recording_is_told(tmp_path: Path, written: str, says: str):
    (tmp_path / "3").write_text(written)
    with pytest.raises(SpecError) as caught:
        read3(tmp_path / "3")
    assert says in str(caught.value)
