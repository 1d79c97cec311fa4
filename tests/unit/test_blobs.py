"""A layer as it is transferred becomes its tar, and never more than it may."""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from sandbox.runtime.image.blobs import uncompress
from sandbox.runtime.image.skopeo import UnavailableError

CONTENT = bytes(range(256)) * 4000
needs_zstd = pytest.mark.skipif(not shutil.which("zstd"), reason="needs zstd")


def pressed(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / "blob").write_bytes(content)
    return tmp_path / "blob"


def zstd(content: bytes) -> bytes:
    return subprocess.run(["zstd", "-cq"], input=content, capture_output=True, check=True).stdout


@pytest.mark.parametrize("press", [bytes, gzip.compress, pytest.param(zstd, marks=needs_zstd)])
def test_it_is_told_by_its_first_bytes_how_it_is_compressed(tmp_path, press):
    uncompress(pressed(tmp_path, press(CONTENT)), tmp_path / "tar", len(CONTENT))
    assert (tmp_path / "tar").read_bytes() == CONTENT


def test_several_streams_in_a_row_are_one(tmp_path):
    halves = gzip.compress(CONTENT[:700]) + gzip.compress(CONTENT[700:])
    uncompress(pressed(tmp_path, halves), tmp_path / "tar", len(CONTENT))
    assert (tmp_path / "tar").read_bytes() == CONTENT


@pytest.mark.parametrize("press", [bytes, gzip.compress, pytest.param(zstd, marks=needs_zstd)])
def test_what_swells_is_given_up(tmp_path, press):
    limit = 5 << 20
    with pytest.raises(UnavailableError, match="too large") as e:
        uncompress(pressed(tmp_path, press(bytes(50 << 20))), tmp_path / "tar", limit)
    assert e.value.lasting
    assert (tmp_path / "tar").stat().st_size <= limit


def test_without_zstd_what_needs_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(UnavailableError, match="zstd, which is not installed") as e:
        uncompress(pressed(tmp_path, b"\x28\xb5\x2f\xfd"), tmp_path / "tar", 1000)
    assert e.value.hint == "apt-get install zstd"
