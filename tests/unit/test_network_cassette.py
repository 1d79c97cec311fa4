"""A cassette is what it says, to the byte, or it is refused with the line."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import NetworkFault, SpecError
from sandbox.runtime.network.asked import key_of
from sandbox.runtime.network.cassette import Cassette, cassette_digest, load, read_index, write
from sandbox.runtime.network.entry import Entry, index_text, kept
from sandbox.runtime.network.merge import merged
from sandbox.runtime.network.message import Request
from sandbox.runtime.network.player import Player
from sandbox.runtime.store import Store
from tests.support.webs import entry, serving

URLS = st.sampled_from(
    ["http://a.test/", "https://b.test:8443/x?y=1&z=2", "http://[::1]/é".replace("é", "%C3%A9")]
)
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20).map(str.strip)
TOKENS = st.text("abcXYZ-0189", min_size=1, max_size=12)
ENTRIES = st.builds(
    lambda url, body, status, headers, accept, number: entry(
        url, body, asked=b"%d" % number, status=status, headers=tuple(headers), accept=accept
    ),
    URLS,
    st.binary(max_size=40),
    st.integers(200, 599),
    st.lists(st.tuples(TOKENS, TEXT), max_size=3),
    st.none() | TEXT,
    st.integers(0, 2),
)
OLD = st.lists(ENTRIES, max_size=8).map(lambda entries: merged([], entries))


def a_cassette(folder: Path, *bodies: bytes) -> tuple[Entry, ...]:
    """One answer for each body, written as a recording does."""
    found = folder.parent / "found"
    found.mkdir(parents=True, exist_ok=True)
    for body in bodies:
        (found / hashlib.sha256(body).hexdigest()).write_bytes(body)
    entries = tuple(entry(f"https://a.test/{i}", body) for i, body in enumerate(bodies))
    write(folder, entries, [found])
    return entries


def loaded(folder: Path, digest: str | None = None) -> Cassette:
    return load(folder, Store(folder.parent / "store"), lambda *_: None, digest=digest)


@given(st.lists(ENTRIES, max_size=10))
def test_an_index_says_what_was_put_into_it(tmp_path_factory: pytest.TempPathFactory, entries):
    path = tmp_path_factory.mktemp("index") / "index.jsonl"
    path.write_text(index_text(entries))
    assert read_index(path) == tuple(entries)
    assert index_text(read_index(path)) == path.read_text()


def test_what_was_written_is_loaded_and_pinned_by_one_digest(tmp_path: Path):
    entries = a_cassette(tmp_path / "tape", b"one", b"two", b"")
    found = loaded(tmp_path / "tape", cassette_digest(tmp_path / "tape"))
    assert found.entries == entries
    assert sorted(p.read_bytes() for p in found.bodies.values()) == [b"", b"one", b"two"]


def test_another_cassette_than_the_pinned_is_refused(tmp_path: Path):
    a_cassette(tmp_path / "tape", b"one")
    digest = cassette_digest(tmp_path / "tape")
    a_cassette(tmp_path / "tape", b"two")
    with pytest.raises(NetworkFault, match="as pinned") as caught:
        loaded(tmp_path / "tape", digest)
    assert not caught.value.retry


def test_a_body_that_was_changed_is_refused_by_name(tmp_path: Path):
    (one,) = a_cassette(tmp_path / "tape", b"one")
    (tmp_path / "tape" / "blobs" / one.sha256).write_bytes(b"eno")
    with pytest.raises(NetworkFault, match=one.sha256):
        loaded(tmp_path / "tape")


def test_a_body_that_is_missing_is_fetched_from_where_it_came_from(tmp_path: Path):
    with serving(lambda _: (200, {}, b"big file"), tmp_path) as web:
        there = entry(f"http://{web.place}/file", b"big file")
        (tmp_path / "tape").mkdir()
        (tmp_path / "tape" / "index.jsonl").write_text(index_text([there]))
        found = loaded(tmp_path / "tape")
    assert found.bodies[there.sha256].read_bytes() == b"big file"
    assert loaded(tmp_path / "tape").bodies == found.bodies, "it is in the store from then on"


def test_a_missing_body_that_is_another_by_now_is_refused(tmp_path: Path):
    with serving(lambda _: (200, {}, b"new file"), tmp_path) as web:
        there = entry(f"http://{web.place}/file", b"big file")
        (tmp_path / "tape").mkdir()
        (tmp_path / "tape" / "index.jsonl").write_text(index_text([there]))
        with pytest.raises(NetworkFault, match="is not what was pinned"):
            loaded(tmp_path / "tape")


def test_the_missing_answer_to_a_question_cannot_be_fetched(tmp_path: Path):
    there = entry("http://a.test/ask", b"answer", method="POST")
    (tmp_path / "tape").mkdir()
    (tmp_path / "tape" / "index.jsonl").write_text(index_text([there]))
    with pytest.raises(NetworkFault, match=r"POST http://a\.test/ask") as caught:
        loaded(tmp_path / "tape")
    assert "stillroom record" in caught.value.hint


GOOD = index_text([entry("http://a.test/", b"x")])
MALFORMED = [
    ("no JSON", GOOD + "{\n", 2, "not valid JSON"),
    ("an unknown key", GOOD + GOOD.replace('"size"', '"sise"'), 2, "unknown key `sise`"),
    ("a path for a hash", GOOD.replace('"sha256":"', '"sha256":"../'), 1, "64 hex digits"),
    ("no status", GOOD.replace(":200,", ":99,"), 1, "99 is not a status"),
    ("a header that is two", GOOD.replace("text/plain", "a\\r\\nb: c"), 1, "is not a header"),
    ("no address", GOOD.replace("http://a.test/", "file:///etc/passwd"), 1, "is not an address"),
    ("no method", GOOD.replace('"GET"', '"G T"'), 1, "is not a method"),
    ("text for a number", GOOD.replace('"size":1', '"size":"1"'), 1, "size"),
]


@pytest.mark.parametrize(
    ("text", "line", "said"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED]
)
def test_a_malformed_index_is_an_error_at_its_line(tmp_path: Path, text: str, line: int, said: str):
    (tmp_path / "index.jsonl").write_text(text)
    with pytest.raises(SpecError, match=said) as caught:
        loaded(tmp_path)
    assert caught.value.where == f"{tmp_path / 'index.jsonl'}:{line}"


def test_no_cassette_is_an_error_that_says_how_to_make_one(tmp_path: Path):
    with pytest.raises(SpecError) as caught:
        loaded(tmp_path)
    assert "stillroom record" in caught.value.hint


@given(OLD)
def test_recording_the_same_again_changes_nothing(old):
    later = [replace(e, headers=(*e.headers, ("Date", "later"))) for e in old]
    assert merged(old, later) == old
    assert merged(old, []) == old


@given(OLD, st.lists(ENTRIES, max_size=8), st.randoms())
def test_the_order_of_what_was_asked_at_once_does_not_matter(old, new, chance):
    series: dict[object, list[Entry]] = {}
    for e in new:
        series.setdefault(e.series, []).append(e)
    groups = list(series.values())
    chance.shuffle(groups)
    assert merged(old, [e for g in groups for e in g]) == merged(old, new)


def test_who_accepts_nothing_has_a_place_of_their_own():
    whoever, nothing = (entry("http://a.test/", accept=accept) for accept in (None, ""))
    assert merged([], [whoever, nothing]) == merged([], [nothing, whoever])


@given(st.lists(ENTRIES, min_size=1, max_size=8))
def test_what_is_played_is_what_was_heard(heard: list[Entry]):
    """Each series in its order; what was heard again at its end is given for ever anyway."""
    heard = [replace(e, accept=None) for e in heard]
    player = Player(merged([], heard), {e.sha256: Path(e.sha256) for e in heard})
    for e in heard:
        bodies = (b"%d" % number for number in range(3))
        asked = next(r for b in bodies if key_of(r := Request(e.method, e.url, body=b)) == e.key)
        answer = player.answer(asked)
        assert answer is not None
        assert (answer.status, answer.body) == (e.status, Path(e.sha256))


def test_an_answer_that_depends_on_what_is_accepted_is_for_who_accepts_it():
    url = "https://a.test/simple/"
    page = entry(url, b"page", accept="text/html")
    data = entry(url, b"data", accept="application/json")
    player = Player([page, data], {e.sha256: Path(e.sha256) for e in (page, data)})
    said = {
        kind: player.answer(Request("GET", url, (("Accept", kind),)))
        for kind in ("text/html", "application/json", "image/png")
    }
    found = {kind: answer and answer.body for kind, answer in said.items()}
    assert found == {
        "text/html": Path(page.sha256),
        "application/json": Path(data.sha256),
        "image/png": None,
    }


def test_a_request_is_another_by_what_it_asks_not_by_who_asks():
    base = Request("GET", "https://a.test/x?b=1&a=2", (("User-Agent", "one"),))
    same = [
        replace(base, headers=(("User-Agent", "two"), ("Authorization", "secret"))),
        replace(base, url="https://A.test:443/x?a=2&b=1"),
    ]
    other = [
        replace(base, method="POST"),
        replace(base, url="http://a.test/x?b=1&a=2"),
        replace(base, url="https://a.test:444/x?b=1&a=2"),
        replace(base, url="https://a.test/X?b=1&a=2"),
        replace(base, url="https://a.test/x?b=1"),
        replace(base, body=b"x"),
        replace(base, headers=(("Range", "bytes=0-9"),)),
        replace(base, headers=(("Git-Protocol", "version=2"),)),
        replace(base, headers=(("Content-Type", "text/plain"),)),
    ]
    assert {key_of(r) for r in same} == {key_of(base)}
    assert len({key_of(r) for r in [base, *other]}) == 1 + len(other)


def test_what_belongs_to_a_connection_is_not_kept():
    headers = (
        ("Connection", "close, X-Hop"),
        ("x-hop", "1"),
        ("Content-Length", "3"),
        ("ETag", "a"),
    )
    assert kept(headers, "GET") == (("ETag", "a"),)
    assert kept((("Content-Length", "many"),), "HEAD") == ()
    assert kept((("a b", "1"), ("a", "1\r\nb: 2"), ("b", "\u20ac"), ("c", "\xe9 ")), "GET") == ()
    assert kept(headers, "HEAD") == (("Content-Length", "3"), ("ETag", "a"))
