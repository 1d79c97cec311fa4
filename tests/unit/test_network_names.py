"""Every name is the box itself; what is no question has no answer; nothing makes it fall."""

import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.runtime.network.bounds import Held, TooLarge
from sandbox.runtime.network.dns import answer
from sandbox.runtime.network.log import NetworkLog
from sandbox.runtime.network.target import Malformed, place_of, url_of

A, TXT, AAAA, SRV, HTTPS = 1, 16, 28, 33, 65


def question(name: str, kind: int, number: int = 7) -> bytes:
    labels = b"".join(bytes([len(p)]) + p.encode() for p in name.split(".") if p)
    return (
        struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0)
        + labels
        + struct.pack("!BHH", 0, kind, 1)
    )


@pytest.mark.parametrize(("kind", "address"), [(A, "127.0.0.1"), (AAAA, "::1")])
def test_a_name_is_the_box_itself(kind: int, address: str):
    found = answer(question("pypi.org", kind))
    number, flags, questions, answers = struct.unpack_from("!HHHH", found.message)
    assert (number, flags & 0x800F, questions, answers) == (7, 0x8000, 1, 1)
    assert found.message.endswith(ip_address(address).packed)
    assert (found.name, found.said) == ("pypi.org", "answered")


@pytest.mark.parametrize(
    ("name", "kind", "code", "said"),
    [
        ("pypi.org", TXT, 5, "refused"),
        ("_http._tcp.deb.debian.org", SRV, 5, "refused"),
        ("pypi.org", HTTPS, 0, "answered"),
        ("nobody.invalid", A, 3, "no such name"),
        ("1.0.0.127.in-addr.arpa", 12, 3, "no such name"),
    ],
)
def test_other_records_are_refused_and_lead_nowhere(name: str, kind: int, code: int, said: str):
    found = answer(question(name, kind))
    _, flags, _, answers = struct.unpack_from("!HHHH", found.message)
    assert (flags & 15, answers, found.said) == (code, 0, said)


@given(st.binary(max_size=600))
def test_anything_may_be_sent(data: bytes):
    found = answer(data)
    assert len(found.message) <= len(data) + 28
    if found.message:
        assert found.message[:2] == data[:2]
        assert found.message[2] & 0x80


@given(st.binary(max_size=60), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_any_question_may_be_asked(rest: bytes, flags: int, questions: int):
    answer(struct.pack("!HHHHHH", 1, flags, questions, 0, 0, 0) + rest)


def test_an_answer_is_never_answered():
    assert answer(question("a.test", A)[:2] + b"\x80" + question("a.test", A)[3:]).message == b""


@pytest.mark.parametrize(
    ("target", "scheme", "host", "url"),
    [
        ("/a?b", "http", "a.test", "http://a.test/a?b"),
        ("/", "https", "A.TEST:443", "https://a.test/"),
        ("/", "http", "a.test.:81", "http://a.test:81/"),
        ("/x", "http", "[::1]:80", "http://[::1]/x"),
        ("http://b.test", "http", "a.test", "http://b.test/"),
        ("HTTPS://b.test:443?q#f", "http", "", "https://b.test/?q"),
        ("/../../etc/passwd", "http", "a.test", "http://a.test/../../etc/passwd"),
    ],
)
def test_what_is_asked_for_is_one_address(target: str, scheme: str, host: str, url: str):
    assert url_of(target, scheme, host, None) == url


@given(st.text(max_size=80), st.sampled_from(["http", "https"]), st.text(max_size=40))
def test_a_target_is_an_address_or_malformed(target: str, scheme: str, host: str):
    try:
        url = url_of(target, scheme, host, None)
    except Malformed:
        return
    assert url.isascii()
    assert url_of(url, scheme, "", None) == url


@given(st.text(max_size=60))
def test_a_place_is_a_host_or_malformed(text: str):
    try:
        place = place_of(text, 443)
    except Malformed:
        return
    assert place_of(place.text("https"), 443) == place


def test_bodies_are_bounded_each_and_together():
    held = Held(10)
    with held.body(8) as one:
        one.add(b"12345678")
        with pytest.raises(TooLarge):
            one.add(b"9")
        with held.body(8) as other, pytest.raises(TooLarge):
            other.add(b"123")
    with held.body(10) as after:
        after.add(b"1234567890")


def test_a_log_does_not_grow_without_end(tmp_path):
    path = tmp_path / "network.jsonl"
    with NetworkLog(path, most=2000, ticks=lambda: 1.0) as log:
        for _ in range(1000):
            log.add("refused", url="x" * 5000)
    assert path.stat().st_size < 4500
    assert '"event": "full"' in path.read_text().splitlines()[-1]
