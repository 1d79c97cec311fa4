"""What is kept of a box that a Dockerfile made, and what is said of the rest."""

import io
import tarfile
from pathlib import Path

import pytest

from sandbox.adapters.harbor.bases import BASE, base_of
from sandbox.adapters.harbor.building import linked
from sandbox.adapters.harbor.made import Made, read_made
from sandbox.adapters.harbor.report import Report
from sandbox.adapters.harbor.solving import is_temporary, own_folder


def made(folder: Path, *members: tuple[str, bytes, int]) -> tuple[Made, dict[str, str]]:
    path = folder / "made.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind, mode in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.size = kind, mode, 1 if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(b"x"))
    report = Report()
    found = read_made(path, "/app", report, "Dockerfile:1")
    return found, {row.field: row.note for row in report.rows}


def test_files_of_the_working_directory_and_all_others_are_told_apart(tmp_path):
    found, rows = made(
        tmp_path,
        ("app", tarfile.DIRTYPE, 0o755),
        ("app/a.txt", tarfile.REGTYPE, 0o644),
        ("app/run", tarfile.REGTYPE, 0o755),
        ("app/empty", tarfile.DIRTYPE, 0o700),
        ("app/.git/HEAD", tarfile.REGTYPE, 0o644),
        ("app/inner/.git/HEAD", tarfile.REGTYPE, 0o644),
        ("var/log/app/a.log", tarfile.REGTYPE, 0o600),
        ("var/log/lastlog", tarfile.REGTYPE, 0o644),
        ("root/.cache/x", tarfile.REGTYPE, 0o644),
    )
    assert [(e.path, e.kind) for e in found.tree] == [("a.txt", "file"), ("run", "exec")]
    assert [(e.path, e.mode) for e in found.rest] == [
        ("app", 0o755), ("app/empty", 0o700), ("app/inner/.git/HEAD", 0o644),
        ("var/log/app/a.log", 0o600),
    ]  # fmt: skip
    assert rows == {}


def test_what_is_not_kept_is_named(tmp_path):
    found, rows = made(
        tmp_path,
        ("app/secret", tarfile.REGTYPE, 0o400),
        ("app/pipe", tarfile.FIFOTYPE, 0o644),
        ("etc/.wh.motd", tarfile.REGTYPE, 0o644),
    )
    assert [e.path for e in found.tree] == ["secret"]
    assert found.rest == ()
    assert rows == {
        "removed files": "they stay: /etc/motd",
        "special files": "no files, folders or links: /app/pipe",
        "modes": "of the working directory only the right to be run is kept: /app/secret (400)",
    }


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("ubuntu", BASE),
        ("public.ecr.aws/docker/library/debian:bookworm-slim@sha256:00", BASE),
        ("mirror.gcr.io/library/python:3.13-slim", BASE),
        ("ghcr.io/laude-institute/t-bench/python-3-13:20250620", BASE),
        ("python:3.13-alpine", None),
        ("someone/debian:12", None),
        ("mcr.microsoft.com/windows/servercore", None),
    ],
)
def test_bases_are_known_by_their_name_at_every_registry(image, name):
    found = base_of(image, {})
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("ln -s /usr/bin/python3 /usr/bin/python", ["/usr/bin/python"]),
        ("x && ln -s -v /usr/bin/python3 /usr/bin/python && y", ["/usr/bin/python"]),
        ("apt-get install python3.11 && ln -sf /usr/bin/python3.11 /usr/bin/python3", []),
        ("ln -s -f /usr/bin/python3.11 /usr/bin/python3", []),
        ("ln -s /usr/bin/pip3 /usr/local/bin/pip; true", ["/usr/local/bin/pip"]),
        ("ln -s a /usr/bin/python-config", []),
    ],
)
def test_a_name_of_python_that_is_to_be_linked_is_seen(script, names):
    assert linked(script) == names


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("/output/a/b.txt", "/output"),
        ("/output", "/output"),
        ("/srv/app/x", "/srv/app"),
        ("/srv/x", "/srv/x"),
        ("/etc/nginx/conf.d/x.conf", "/etc/nginx/conf.d/x.conf"),
        ("/var/log/app.log", "/var/log/app.log"),
    ],
)
def test_a_folder_of_the_tasks_own_is_submitted_whole(path, folder):
    assert own_folder(path, "/app", {}) == folder


@pytest.mark.parametrize(
    ("path", "temporary"),
    [
        ("/tmp", True),
        ("/tmp/tmp1x", True),
        ("/tmp/uv-1/x", True),
        ("/tmp/result.txt", False),
        ("/tmpx", False),
    ],
)
def test_what_somebody_meant_to_leave_in_tmp_is_no_noise(path, temporary):
    assert is_temporary(path) == temporary
