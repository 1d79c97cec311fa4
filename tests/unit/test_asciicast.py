"""Recordings: what is written is what was shown, bounded, and read again whatever happened."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import SpecError
from sandbox.formats.asciicast import Bounds, Cast, Event, read_cast


class Ticks:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def cast(path: Path, ticks: Ticks | None = None, **more: Any) -> Cast:
    return Cast(path, rows=40, cols=160, wall=lambda: 1e9, ticks=ticks or Ticks(), **more)


def shown(path: Path) -> str:
    return "".join(e.data for e in read_cast(path).events if e.code == "o")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "terminal.cast"


def test_the_header_is_there_at_once_and_says_what_the_format_wants(path: Path):
    with cast(path, title="my-task"):
        assert json.loads(path.read_text()) == {
            "version": 2,
            "width": 160,
            "height": 40,
            "timestamp": 1_000_000_000,
            "env": {"TERM": "xterm-256color", "SHELL": "/bin/bash"},
            "title": "my-task",
        }
    header = read_cast(path).header
    assert (header.width, header.height, header.title) == (160, 40, "my-task")


def test_events_are_on_disk_as_they_happen_with_their_times(path: Path):
    ticks = Ticks()
    with cast(path, ticks) as it:
        acts: tuple[Callable[[], None], ...] = (
            lambda: it.marker("run 1"),
            lambda: it.output(b"\x1b[1mhi\r\n"),
            lambda: it.typed(b"q"),
            lambda: it.resized(24, 80),
        )
        for number, act in enumerate(acts):
            ticks.now += 0.5
            act()
            assert len(path.read_text().splitlines()) == number + 2
    assert read_cast(path).events == (
        Event(0.5, "m", "run 1"),
        Event(1.0, "o", "\x1b[1mhi\r\n"),
        Event(1.5, "i", "q"),
        Event(2.0, "r", "80x24"),
    )


def test_a_character_cut_in_pieces_comes_out_whole(path: Path):
    with cast(path) as it:
        for byte in "ü漢🎉".encode():
            it.output(bytes([byte]))
    assert [e.data for e in read_cast(path).events] == ["ü", "漢", "🎉"]


def test_half_a_character_is_replaced_when_something_else_comes(path: Path):
    with cast(path) as it:
        it.output(b"a\xc3")
        it.marker("x")
        it.typed(b"\xe6\xbc")
        it.typed(b"\xa2\xe6")
        it.output(b"b\xff\xc3")
    assert [(e.code, e.data) for e in read_cast(path).events] == [
        ("o", "a"), ("o", "�"), ("m", "x"), ("i", "漢"), ("i", "�"), ("o", "b�"), ("o", "�"),
    ]  # fmt: skip


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_any_bytes_make_a_recording_that_shows_them(tmp_path_factory, parts: list[bytes]):
    path = tmp_path_factory.mktemp("cast") / "a.cast"
    with cast(path) as it:
        for part in parts:
            it.output(part)
    for line in path.read_bytes().splitlines():
        json.loads(line)
    assert shown(path) == b"".join(parts).decode("utf-8", "replace")


def test_of_long_output_the_beginning_and_the_end_are_kept_with_their_times(path: Path):
    ticks = Ticks()
    lines = [b"%06d\r\n" % i for i in range(1000)]
    with cast(path, ticks, bounds=Bounds(head=800, tail=160)) as it:
        for line in lines:
            ticks.now += 0.1
            it.output(line)
        ticks.now += 50
        it.marker("next")
        it.output(b"again")
    text, events = shown(path), read_cast(path).events
    head, _, rest = text.partition("\x18\r\n[… ")
    said, _, tail = rest.partition(" bytes left out …]\r\n")
    assert head == b"".join(lines[:100]).decode()
    tail = tail.removesuffix("again")
    assert tail.encode() == b"".join(lines[-(len(tail) // 8) :])
    assert 140 < len(tail) <= 160
    assert len(head) + int(said) + len(tail) == 8000
    times = {e.data: e.time for e in events}
    assert times["000999\r\n"] == pytest.approx(100.0)
    assert times["next"] == pytest.approx(150.0)
    assert times["000050\r\n"] == pytest.approx(5.1)
    assert [e.time for e in events] == sorted(e.time for e in events)


def test_output_just_over_the_beginning_loses_nothing(path: Path):
    with cast(path, bounds=Bounds(head=10, tail=10)) as it:
        it.output("0123456789ünd mehr"[:15].encode())
        it.resized(1, 2)
        it.output(b"!")
    assert shown(path) == "0123456789ünd m!"


def test_a_flood_is_bounded(path: Path):
    with cast(path, bounds=Bounds(whole=1 << 20)) as it:
        for _ in range(40):
            it.marker("again")
            for _ in range(64):
                it.output(b"\x1b[31mflood" * 1000)
        it.typed(b"x" * 1000)
    assert path.stat().st_size < 2 << 20
    recording = read_cast(path)
    assert sum(e.code == "m" for e in recording.events) == 40
    assert recording.events[-1].data.endswith("bytes left out …]\r\n")


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=30))
def test_whatever_the_pieces_the_file_is_sound(tmp_path_factory, parts: list[tuple[int, bool]]):
    path = tmp_path_factory.mktemp("cast") / "a.cast"
    ticks = Ticks()
    with cast(path, ticks, bounds=Bounds(head=50, tail=20, whole=2000)) as it:
        for size, mark in parts:
            ticks.now += 0.01
            it.output("ä".encode() * size)
            if mark:
                it.marker("m")
    events = read_cast(path).events
    assert [e.time for e in events] == sorted(e.time for e in events)
    assert "�" not in shown(path).replace("ä�", "ä")


def test_for_a_person_every_key_begins_anew(path: Path):
    with cast(path, bounds=Bounds(head=4, tail=0)) as it:
        for _ in range(3):
            it.afresh()
            it.output(b"abcdef")
    assert shown(path).count("abcd") == 3
    assert shown(path).count("[… 2 bytes left out …]") == 3


def test_what_comes_after_the_end_is_let_go(path: Path):
    with cast(path) as it:
        it.output(b"a")
    it.output(b"b")
    it.marker("c")
    it.__exit__(None)
    assert shown(path) == "a"


def test_threads_do_not_tear_each_other_s_events(path: Path):
    with cast(path) as it:

        def print_much() -> None:
            for _ in range(200):
                it.output(b"0123456789" * 10)

        threads = [threading.Thread(target=print_much) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert shown(path) == "0123456789" * 10 * 800


def test_a_disk_that_is_full_is_told_at_the_end():
    with pytest.raises(OSError, match="No space"), cast(Path("/dev/full")) as it:
        it.output(b"lost")


def test_of_a_run_that_died_all_but_the_torn_line_is_read(path: Path):
    with cast(path) as it:
        it.output(b"one")
        it.output("ü".encode())
    whole = path.read_bytes()
    start = whole.rindex(b"[")
    for end in range(start, len(whole) - 2):
        path.write_bytes(whole[:end])
        assert [e.data for e in read_cast(path).events] == ["one"]


HEAD = '{"version": 2, "width": 80, "height": 24}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("{", "a.cast:1"),
        ("[]\n", "a.cast:1: no header"),
        ('{"version": 1}\n', "a.cast:1: asciicast version 1"),
        ('{"version": 2, "width": true, "height": 1}\n', "no header"),
        ('{"version": 2, "width": -1, "height": 1}\n', "no header"),
        (HEAD + '[0, "o"\n[1, "o", ""]\n', "a.cast:2"),
        (HEAD + '[1, "o"]\n', "a.cast:2: an event"),
        (HEAD + '[NaN, "o", ""]\n', "a.cast:2"),
        (HEAD + '[1e999, "o", ""]\n', "a.cast:2: an event"),
        (HEAD + '[-1, "o", ""]\n', "a.cast:2: an event"),
        (HEAD + '[true, "o", ""]\n', "a.cast:2: an event"),
        (HEAD + '[1, "o", 7]\n', "a.cast:2: an event"),
        (HEAD + "\n[1]\n", "a.cast:2"),
        (HEAD + "[" * 100_000 + "\n", "a.cast:2"),
        (HEAD + "[" + "9" * 5000 + ', "o", ""]\n', "a.cast:2"),
    ],
    ids=lambda v: ascii(v[:50]),
)
def test_what_is_no_recording_is_refused_with_its_place(tmp_path: Path, text: str, said: str):
    path = tmp_path / "a.cast"
    path.write_text(text)
    with pytest.raises(SpecError, match=said):
        read_cast(path)


def test_recordings_of_others_may_say_more(path: Path):
    path.write_text(
        '{"version": 2, "width": 80, "height": 24, "theme": {}, "env": {"TERM": null}}\n'
        '[0.1, "x", "?"]\n[1, "o", "hi"]'
    )
    recording = read_cast(path)
    assert recording.events == (Event(0.1, "x", "?"), Event(1.0, "o", "hi"))
    assert recording.header.env == {}
