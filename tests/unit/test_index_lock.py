"""index.lock.jsonl is read strictly and written in one way only."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from sandbox.errors import NetworkFault, SpecError, UserError
from sandbox.formats import indexfile
from sandbox.formats.shape import plain
from sandbox.model.index import IndexLock, date_of
from sandbox.runtime.network.index.files import ensure_files
from sandbox.runtime.network.index.record import added, record_index
from sandbox.runtime.network.index.resolve import Wanted, resolve
from sandbox.runtime.network.index.resolve_npm import Locked, locked_packages, manifest_of
from sandbox.runtime.network.index.resolve_pypi import canonical_url
from tests.support.packages import deb, lock_of, tarball, wheel


@pytest.fixture
def lock(store) -> IndexLock:
    return lock_of(deb(store), tarball(store, "@toys/part", needs={"a": "^1"}), wheel(store))


def test_a_lock_comes_back_as_it_was_written(lock, tmp_path):
    indexfile.write(tmp_path / "lock", lock)
    assert indexfile.load(tmp_path / "lock") == lock


def test_the_order_of_pins_and_what_is_not_set_leave_no_trace(lock):
    turned = replace(lock, pins=tuple(reversed(lock.pins)))
    assert indexfile.dumps(turned) == indexfile.dumps(lock)
    assert "null" not in indexfile.dumps(lock)
    assert len(indexfile.dumps(lock).splitlines()) == 4


def lines_of(lock: IndexLock) -> list[dict[str, Any]]:
    return [json.loads(line) for line in indexfile.dumps(lock).splitlines()]


@pytest.mark.parametrize(
    ("line", "change", "said"),
    [
        (1, {"kind": "pypi"}, r'lock:1: the first line should have "kind": "index"'),
        (1, {"pin": "yesterday"}, r"lock:1: `pin` is no date"),
        (1, {"pinn": "x"}, r"lock:1: unknown key `pinn`"),
        (1, {"schema": 2}, r"lock:1: `schema`"),
        (2, {"kind": "cargo"}, r'lock:2: `kind` is "cargo"'),
        (2, {"kind": None}, r"lock:2: `kind` is null"),
        (2, {"sha256": "A" * 64}, r"lock:2: `sha256` should be 64 hex digits"),
        (2, {"size": 1}, r"lock:2: `stanza` does not say Size: 1"),
        (2, {"size": "1"}, r"lock:2: `size`"),
        (2, {"name": "Toy"}, r"lock:2: `name` is no name of apt"),
        (2, {"stanza": "Package: toy\n\nPackage: more\n"}, r"lock:2: `stanza`"),
        (3, {"version": "1 0"}, r"lock:3: `version` is no version"),
        (3, {"name": "@toys/../part"}, r"lock:3: `name` is no name of npm"),
        (3, {"manifest": {"version": "9"}}, r"lock:3: `manifest` is of another version"),
        (3, {"url": "https://mirror.example/part-1.0.0.tgz"}, r"lock:3: `url` is not below https:"),
        (
            4,
            {"url": "https://files.pythonhosted.org/../toy-1.0.whl"},
            r"lock:4: `url` is not below",
        ),
        (4, {"filename": "other.whl"}, r"lock:4: `url` does not end in other\.whl"),
        (4, {"uploaded": "2024-13-01T00:00:00Z"}, r"lock:4: `uploaded` is no date"),
        (4, {"filname": "x"}, r"lock:4: unknown key `filname`"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(lock, tmp_path, line, change, said):
    lines = lines_of(lock)
    lines[line - 1] |= change
    (tmp_path / "lock").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    with pytest.raises(SpecError, match=said):
        indexfile.load(tmp_path / "lock")


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "lock:1: the file is empty"), ("{", "lock:1: not valid JSON"), ("[]\n", "lock:1: the f")],
)
def test_what_is_no_lock_is_told_so(tmp_path, text, said):
    (tmp_path / "lock").write_text(text)
    with pytest.raises(SpecError, match=said):
        indexfile.load(tmp_path / "lock")


def test_a_file_twice_is_told_with_both_lines(lock, tmp_path):
    text = indexfile.dumps(lock)
    (tmp_path / "lock").write_text(text + text.splitlines()[1] + "\n")
    with pytest.raises(SpecError, match=r"lock:5: .*toy_1\.0-1_amd64\.deb is on line 2, too"):
        indexfile.load(tmp_path / "lock")


def test_files_that_are_stored_are_not_fetched_again(lock, store):
    said: list[str] = []
    ensure_files(store, lock, lambda text, *_: said.append(text))
    assert len(said) == 3


def test_a_stored_file_that_was_changed_is_refused_by_name(lock, store):
    store.blob(lock.pins[-1].sha256).write_bytes(b"tampered")
    with pytest.raises(NetworkFault, match=r"refused: toy-1\.0-py3-none-any\.whl is not what"):
        ensure_files(store, lock, lambda *_: None)


def test_a_file_s_public_address_follows_from_its_content(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    found = canonical_url(tmp_path / "f", "x-1.0.tar.gz")
    assert found == (
        "https://files.pythonhosted.org/packages/d1/61/"
        "d71145abeec5ef15abcf0459cec60a27321e2f0ac0ef7ace5254f5944476/x-1.0.tar.gz"
    )


def test_npm_s_lock_names_packages_behind_aliases_and_scopes_but_none_for_other_machines():
    entry = {"version": "1.0.0", "integrity": "sha512-x", "resolved": "https://r/x.tgz"}
    packages = {
        "": {"name": "whole"},
        "node_modules/plain": entry,
        "node_modules/plain/node_modules/@a/b": entry,
        "node_modules/alias": entry | {"name": "real"},
        "node_modules/for-mac": entry | {"optional": True, "os": ["darwin"]},
        "node_modules/not-linux": entry | {"optional": True, "os": ["!linux"]},
        "node_modules/for-arm": entry | {"optional": True, "os": ["linux"], "cpu": ["arm64"]},
        "node_modules/for-musl": entry | {"optional": True, "libc": ["musl"]},
        "node_modules/for-us": entry | {"optional": True, "os": ["linux"], "cpu": ["x64"]},
        "node_modules/plain/node_modules/inside": {"version": "1.0.0", "inBundle": True},
    }
    found = list(locked_packages({"packages": packages}))
    assert [p.name for p in found] == ["plain", "@a/b", "real", "for-us"]
    assert found[0] == Locked("plain", "1.0.0", "sha512-x")


def test_what_is_not_from_npm_s_registry_is_refused():
    packages = {"node_modules/odd": {"version": "1.0.0", "resolved": "git+ssh://git@host/odd"}}
    with pytest.raises(NetworkFault, match="odd does not come from the registry: git"):
        list(locked_packages({"packages": packages}))


def test_of_what_the_registry_says_only_what_installing_needs_is_kept():
    said = {"name": "a", "bin": {"a": "a.js"}, "readme": "…", "scripts": {"postinstall": "x"}}
    assert manifest_of(said) == {"bin": {"a": "a.js"}, "hasInstallScript": True}
    assert manifest_of({"scripts": {"test": "x"}, "dependencies": {}}) == {}


@pytest.mark.parametrize("name", ["--index-url=http://x", "", "a\nb", "-r/etc/passwd"])
@pytest.mark.parametrize("kind", ["pip", "npm", "apt"])
def test_an_option_is_no_package(store, name, kind):
    with pytest.raises(UserError, match="not a package for"):
        resolve(store, Wanted(**{kind: (name,)}), "2024-05-15T12:00:00Z", None, lambda *_: None)


def test_an_index_is_pinned_at_a_date(store):
    with pytest.raises(UserError, match="not a date"):
        resolve(store, Wanted(), "2024-05-15", None, lambda *_: None)
    assert date_of(datetime(2024, 5, 15, 12, tzinfo=UTC)) == "2024-05-15T12:00:00Z"


def test_a_lock_that_asks_for_nothing_lists_nothing(store):
    found = resolve(store, Wanted(), "2024-05-15T12:00:00Z", None, lambda *_: None)
    assert plain(found.head)["kind"] == "index"
    assert found.pins == ()


def test_what_was_listed_stays_listed_when_more_is_added(store, tmp_path):
    old = lock_of(deb(store), wheel(store, "a"))
    old = replace(old, head=replace(old.head, snapshot="20240101T000000Z"))
    found = added(old, lock_of(wheel(store, "b")))
    assert [p.name for p in found.pins] == ["toy", "a", "b"]
    assert found.head.snapshot == "20240101T000000Z"
    indexfile.write(tmp_path / "index.lock.jsonl", found)
    nothing = (store, tmp_path, Wanted(), "2024-05-15T12:00:00Z", None, lambda *_: None)
    assert record_index(*nothing) == found
    assert record_index(*nothing, fresh=True).pins == ()
    assert indexfile.load(tmp_path / "index.lock.jsonl").pins == ()
