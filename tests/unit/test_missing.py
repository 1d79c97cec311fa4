"""What a machine lacks is said in words."""

import resource

import pytest

from sandbox.runtime.embedded.machine import missing


def test_too_few_open_files_are_said_before_a_box_is_made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    assert missing() == ["the embedded runtime needs 1024 open files, not 64: ulimit -n"]
