"""A frozen index answers as the real ones do, from its lock alone, and says no with the lock's name."""

import hashlib
import json
import re
import string
import subprocess
import sys
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.formats import indexfile
from sandbox.runtime.network.index.clients import client_environment, client_mounts
from sandbox.runtime.network.index.frozen import FrozenIndex, frozen_index, open_index
from sandbox.runtime.network.index.names import pypi_name, semver_key
from sandbox.runtime.network.index.npm import dist_tags
from sandbox.runtime.network.message import Request, Response, is_refusal
from sandbox.runtime.store import Store
from tests.support.packages import deb, lock_of, tarball, wheel

SIMPLE = "application/vnd.pypi.simple.v1+json"
ABBREVIATED = "application/vnd.npm.install-v1+json"
NPM, APT = "https://registry.npmjs.org", "http://deb.debian.org/debian"


@pytest.fixture
def index(store: Store):
    return frozen_index(
        lock_of(
            wheel(store, "toy-box", "1.0"),
            wheel(store, "toy-box", "0.9"),
            tarball(store, "@toys/part", "1.2.0"),
            tarball(store, "toy", "1.0.0", {"@toys/part": "^1.0.0"}),
            tarball(store, "toy", "1.10.0"),
            deb(store, "toy"),
            deb(store, "apple", "2:1.0~rc1"),
        ),
        store.blob,
    )


def get(index: FrozenIndex, url: str, method: str = "GET", **headers: str) -> Response:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    found = index.answer(Request(method, url, named))
    assert found is not None
    return found


def content(response: Response) -> bytes:
    return response.body if isinstance(response.body, bytes) else response.body.read_bytes()


def told(response: Response):
    return json.loads(content(response))


@pytest.mark.parametrize(
    "url", ["https://pypi.org/simple/Toy_Box/", "https://pypi.org/simple/toy-box"]
)
def test_a_project_has_one_page_however_its_name_is_written(index, url):
    page = get(index, url, Accept=f"{SIMPLE}, text/html;q=0.1")
    assert page.header("content-type") == SIMPLE
    assert told(page)["name"] == "toy-box"
    assert told(page)["versions"] == ["0.9", "1.0"]


def test_a_json_page_says_all_of_a_file_that_clients_ask_for(index, store):
    pin = wheel(store, "toy-box", "1.0")
    page = get(index, "https://pypi.org/simple/toy-box/", Accept=SIMPLE)
    assert told(page)["files"][1] == {
        "filename": "toy_box-1.0-py3-none-any.whl",
        "url": pin.url,
        "hashes": {"sha256": pin.sha256},
        "size": pin.size,
        "requires-python": ">=3.7",
        "upload-time": "2024-01-02T03:04:05Z",
        "core-metadata": True,
        "yanked": False,
    }


def test_an_html_page_has_the_same_files_with_their_hashes(index, store):
    page = get(index, "https://pypi.org/simple/toy-box/", Accept="text/html")
    assert page.header("content-type") == "text/html; charset=utf-8"
    text = content(page).decode()
    pin = wheel(store, "toy-box", "1.0")
    assert f'href="{pin.url}#sha256={pin.sha256}" data-requires-python="&gt;=3.7"' in text
    assert text.count("<a ") == 2


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/html; charset=utf-8"),
        ("*/*", "text/html; charset=utf-8"),
        (f"{SIMPLE};q=0.1, text/html", "text/html; charset=utf-8"),
        ("application/vnd.pypi.simple.latest+json", SIMPLE),
        ("application/vnd.pypi.simple.v1+html", "application/vnd.pypi.simple.v1+html"),
        (f"{SIMPLE};q=nonsense", "text/html; charset=utf-8"),
    ],
)
def test_a_page_is_of_the_type_that_the_client_likes_best(index, accept, kind):
    page = get(index, "https://pypi.org/simple/toy-box/", Accept=accept)
    assert page.header("content-type") == kind


def test_the_whole_index_lists_its_projects(index):
    page = get(index, "https://pypi.org/simple/", Accept=SIMPLE)
    assert told(page)["projects"] == [{"name": "toy-box"}]
    assert b'<a href="/simple/toy-box/">' in content(get(index, "https://pypi.org/simple/"))


def test_a_wheel_and_its_metadata_are_where_the_page_says(index, store):
    pin = wheel(store, "toy-box", "1.0")
    assert content(get(index, pin.url)) == store.blob(pin.sha256).read_bytes()
    assert content(get(index, f"{pin.url}.metadata")).startswith(b"Metadata-Version: 2.1\n")


def test_what_is_a_wheel_by_its_name_only_has_no_metadata(index, store):
    pin = wheel(store, "toy-box", "1.0")
    store.blob(pin.sha256).write_bytes(b"no archive")
    assert get(index, f"{pin.url}.metadata").status == 404


@pytest.mark.parametrize(
    ("asked", "status", "start", "end"),
    [
        ("bytes=0-9", 206, 0, 10),
        ("bytes=10-", 206, 10, None),
        ("bytes=-22", 206, -22, None),
        ("bytes=-99999999", 206, 0, None),
        ("bytes=0-99999999", 206, 0, None),
        ("bytes=9-3", 200, 0, None),
        ("bytes=-", 200, 0, None),
        ("bytes=0-1,4-5", 200, 0, None),
        ("lines=0-1", 200, 0, None),
    ],
)
def test_a_range_of_a_wheel_is_that_range(index, store, asked, status, start, end):
    pin = wheel(store, "toy-box", "1.0")
    data = store.blob(pin.sha256).read_bytes()
    found = get(index, pin.url, Range=asked)
    assert (found.status, content(found)) == (status, data[start:end])
    if status == 206:
        first = start if start >= 0 else len(data) + start
        last = first + len(content(found)) - 1
        assert found.header("content-range") == f"bytes {first}-{last}/{len(data)}"


@pytest.mark.parametrize("asked", ["bytes=99999999-", "bytes=-0"])
def test_a_range_past_the_end_is_no_range(index, store, asked):
    pin = wheel(store, "toy-box", "1.0")
    found = get(index, pin.url, Range=asked)
    assert (found.status, found.header("content-range")) == (416, f"bytes */{pin.size}")


def test_a_range_of_another_file_than_the_client_has_is_the_whole_file(index, store):
    pin = wheel(store, "toy-box", "1.0")
    assert get(index, pin.url, Range="bytes=0-9", If_Range='"other"').status == 200
    assert get(index, pin.url, Range="bytes=0-9", If_Range=f'"{pin.sha256}"').status == 206


@pytest.mark.parametrize("path", ["@toys%2fpart", "@toys%2Fpart", "@toys/part", "%40toys%2fpart"])
def test_a_scoped_package_is_found_however_its_name_is_escaped(index, path):
    assert told(get(index, f"{NPM}/{path}"))["name"] == "@toys/part"


def test_a_packument_leads_to_the_tarball(index, store):
    found = told(get(index, f"{NPM}/toy", Accept=f"{ABBREVIATED}; q=1.0, application/json; q=0.8"))
    assert found["dist-tags"] == {"latest": "1.10.0"}
    version = found["versions"]["1.0.0"]
    assert version["dependencies"] == {"@toys/part": "^1.0.0"}
    pin = tarball(store, "toy", "1.0.0", {"@toys/part": "^1.0.0"})
    assert version["dist"]["integrity"] == pin.integrity
    assert content(get(index, version["dist"]["tarball"])) == store.blob(pin.sha256).read_bytes()


def test_a_packument_is_abbreviated_when_that_is_asked_for(index):
    short = get(index, f"{NPM}/toy", Accept=ABBREVIATED)
    whole = get(index, f"{NPM}/toy", Accept="application/json")
    assert (short.header("content-type"), whole.header("content-type")) == (
        ABBREVIATED,
        "application/json",
    )
    assert "time" not in told(short)
    assert set(told(whole)["time"].values()) == {"2024-05-15T12:00:00.000Z"}


def test_a_version_or_tag_has_a_page_of_its_own(index):
    assert told(get(index, f"{NPM}/toy/latest"))["version"] == "1.10.0"
    assert told(get(index, f"{NPM}/@toys%2fpart/1.2.0"))["_id"] == "@toys/part@1.2.0"
    assert get(index, f"{NPM}/toy/7.0.0").status == 404


def test_the_archive_s_hashes_lead_from_release_to_the_packages(index, store):
    release = content(get(index, f"{APT}/dists/bookworm/Release")).decode()
    assert "Date: Wed, 15 May 2024 12:00:00 UTC\n" in release
    (line,) = re.findall(r"^ ([0-9a-f]{64}) (\d+) (\S+)$", release, re.MULTILINE)
    sha256, size, path = line
    packages = content(get(index, f"{APT}/dists/bookworm/{path}"))
    assert (hashlib.sha256(packages).hexdigest(), str(len(packages))) == (sha256, size)
    folder = path.rpartition("/")[0]
    by_hash = get(index, f"{APT}/dists/bookworm/{folder}/by-hash/SHA256/{sha256}")
    assert content(by_hash) == packages
    names = re.findall(r"^Package: (.*)$", packages.decode(), re.MULTILINE)
    assert names == ["apple", "toy"]
    for pin in (deb(store, "toy"), deb(store, "apple", "2:1.0~rc1")):
        assert pin.stanza in packages.decode()
        url = f"{APT}/{quote(pin.filename)}"
        assert content(get(index, url)) == store.blob(pin.sha256).read_bytes()


@pytest.mark.parametrize(
    "url",
    [
        "https://pypi.org/simple/flask/",
        "https://pypi.org/pypi/toy-box/json",
        "https://files.pythonhosted.org/packages/flask-1.0-py3-none-any.whl",
        "https://files.pythonhosted.org/flask.whl.metadata",
        f"{NPM}/left-pad",
        f"{NPM}/@toys%2fother",
        f"{NPM}/toy/-/toy-9.9.9.tgz",
        f"{NPM}/",
        f"{APT}/dists/trixie/Release",
        f"{APT}/pool/main/s/sl/sl_5.02-1_amd64.deb",
    ],
)
def test_what_is_not_listed_is_404_and_names_the_lock(index, url):
    found = get(index, url)
    assert (found.status, is_refusal(found)) == (404, True)
    assert b"index.lock.jsonl" in content(found)
    assert re.search(rb"stillroom record TASK --(pip|npm|apt) NAME", content(found))


@pytest.mark.parametrize("file", ["InRelease", "Release.gpg"])
def test_that_nothing_is_signed_is_no_refusal(index, file):
    found = get(index, f"{APT}/dists/bookworm/{file}")
    assert (found.status, is_refusal(found)) == (404, False)


def test_pip_is_told_in_the_one_way_that_it_passes_on(index):
    found = get(index, "https://pypi.org/simple/flask/", User_Agent="pip/25.3 {}")
    assert (found.status, is_refusal(found)) == (200, True)
    assert "index.lock.jsonl" in found.header("content-type")


def test_nothing_is_written_to_an_index(index):
    assert get(index, f"{NPM}/toy", "PUT").status == 405
    assert get(index, f"{NPM}/-/npm/v1/security/advisories/bulk", "POST").status == 405


def test_other_hosts_and_indexes_that_hold_nothing_are_somebody_else_s(index, store):
    assert index.answer(Request("GET", "https://example.org/simple/toy-box/")) is None
    only = frozen_index(lock_of(deb(store)), store.blob)
    assert only.answer(Request("GET", "https://pypi.org/simple/toy-box/")) is None
    assert only.answer(Request("GET", f"{NPM}/toy")) is None


def test_the_order_of_the_pins_is_nobody_s(store):
    pins = [wheel(store, "b"), wheel(store, "a"), tarball(store, "c"), deb(store), deb(store, "z")]
    urls = [
        "https://pypi.org/simple/",
        "https://pypi.org/simple/a/",
        f"{NPM}/c",
        f"{APT}/dists/bookworm/Release",
        f"{APT}/dists/bookworm/main/binary-amd64/Packages",
    ]
    one, two = (frozen_index(lock_of(*p), store.blob) for p in (pins, reversed(pins)))
    assert [get(one, url) for url in urls] == [get(two, url) for url in urls]


def test_a_lock_that_was_looked_at_is_opened_without_the_parser(store, tmp_path):
    lock = lock_of(wheel(store), tarball(store, tags=("latest", "x")), deb(store))
    indexfile.write(tmp_path / "lock", lock)
    one = frozen_index(lock, store.blob)
    two = open_index(tmp_path / "lock", store.blob(""))
    for url in ("https://pypi.org/simple/toy/", f"{NPM}/toy", f"{APT}/dists/bookworm/Release"):
        assert get(one, url) == get(two, url)
    code = "import sys, sandbox.runtime.network.index.frozen as f; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"


@pytest.mark.parametrize(
    ("versions", "latest"),
    [
        (["1.0.0", "1.10.0", "1.9.0"], "1.10.0"),
        (["1.0.0", "2.0.0-rc.1"], "1.0.0"),
        (["2.0.0-rc.2", "2.0.0-rc.10", "2.0.0-alpha"], "2.0.0-rc.10"),
    ],
)
def test_latest_is_the_highest_release(store, versions, latest):
    assert dist_tags([tarball(store, version=v) for v in versions])["latest"] == latest


def test_latest_is_what_the_registry_said_when_it_did(store):
    pins = [tarball(store, version="1.0.0", tags=("latest",)), tarball(store, version="2.0.0")]
    assert dist_tags(pins) == {"latest": "1.0.0"}


NUMBERS = st.tuples(*[st.integers(0, 1000)] * 3)
LABELS = st.lists(st.from_regex(r"(0|[1-9][0-9]{0,3}|[a-z]{1,4})", fullmatch=True), max_size=3)


@given(NUMBERS, NUMBERS)
def test_releases_are_ordered_as_numbers(one, two):
    keys = [semver_key(".".join(map(str, numbers))) for numbers in (one, two)]
    assert (keys[0] < keys[1]) == (one < two)


@given(NUMBERS, LABELS, LABELS)
def test_prereleases_come_before_their_release_in_one_order(numbers, one, two):
    plain = ".".join(map(str, numbers))
    before, after = (f"{plain}-{'.'.join(p)}" if p else plain for p in (one, two))
    assert (semver_key(before) < semver_key(after)) + (semver_key(after) < semver_key(before)) == (
        before != after
    )
    if one:
        assert semver_key(before) < semver_key(plain)


@given(st.text(string.ascii_letters + string.digits + "-_.", min_size=1))
def test_a_normalised_name_stays_as_it_is(name):
    assert pypi_name(pypi_name(name)) == pypi_name(name)
    assert re.fullmatch(r"[a-z0-9-]+", pypi_name(name))


@given(st.text(), st.text())
def test_any_two_versions_have_an_order(one, two):
    assert (semver_key(one) < semver_key(two)) == (semver_key(two) > semver_key(one))


@given(st.text(string.printable))
def test_no_path_breaks_an_index(tmp_path_factory, path):
    store = Store(tmp_path_factory.getbasetemp() / "any")
    index = frozen_index(
        lock_of(wheel(store), tarball(store), deb(store)),
        store.blob,
    )
    for host in ("pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "deb.debian.org"):
        url = f"https://{host}/{quote(path, safe='/%')}"
        if urlsplit(url).hostname == host:
            assert get(index, url, Range=path).status in (200, 404)


def test_a_box_with_debs_is_told_to_trust_this_archive_alone(store, tmp_path):
    lock = lock_of(deb(store), wheel(store))
    mounts = {m.target: m.source.read_text() for m in client_mounts(lock, tmp_path)}
    assert mounts["/etc/apt/frozen-index.list"] == (
        "deb [trusted=yes] http://deb.debian.org/debian bookworm main\n"
    )
    assert '"/etc/apt/frozen-index.list"' in mounts["/etc/apt/apt.conf.d/99frozen-index"]
    assert client_environment(lock) == {
        "DEBIAN_FRONTEND": "noninteractive",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    assert client_mounts(lock_of(wheel(store)), tmp_path) == ()
