"""Limits, written to fake trees of each kind that kernels have."""

import os
from pathlib import Path

import pytest

from sandbox.runtime.embedded.cgroup import Cgroups, Usage, delegated, detect, join

MIB = 1 << 20
V1_FILES = {
    "memory": ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
    "pids": ["pids.max"],
    "cpu": ["cpu.cfs_period_us", "cpu.cfs_quota_us"],
}
V2_FILES = ["memory.max", "memory.swap.max", "pids.max", "cpu.max"]


def v1(root: Path, *, without: str = "") -> Path:
    """A kernel makes a group's files; here they are made before."""
    for controller, files in V1_FILES.items():
        box = root / controller / "stillroom" / "box"
        box.mkdir(parents=True)
        for name in [*files, "cgroup.procs"]:
            if name != without:
                (box / name).write_text("")
    return root


def v2(root: Path, *, controllers: str = "cpuset cpu io memory pids") -> Path:
    box = root / "stillroom" / "box"
    box.mkdir(parents=True)
    (root / "cgroup.controllers").write_text(controllers + "\n")
    for folder in (root, root / "stillroom"):
        (folder / "cgroup.subtree_control").write_text("")
    for name in [*V2_FILES, "cgroup.procs"]:
        (box / name).write_text("")
    return root


def found(root: Path) -> Cgroups:
    groups = detect(str(root))
    assert groups is not None
    return groups


def test_v1_has_a_group_per_controller_with_its_limits(tmp_path: Path):
    groups = found(v1(tmp_path))
    assert groups.version == 1
    groups.limit("box", memory_bytes=64 * MIB, pids=9, cpus=1.5)
    written = {p.name: p.read_text() for p in tmp_path.glob("*/stillroom/box/*") if p.read_text()}
    assert written == {
        "memory.limit_in_bytes": str(64 * MIB),
        "memory.memsw.limit_in_bytes": str(64 * MIB),
        "pids.max": "9",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "150000",
    }


@pytest.mark.parametrize(
    ("tree", "file"),
    [(v1, "memory/stillroom/box/memory.oom_control"), (v2, "stillroom/box/memory.events")],
)
def test_a_box_that_was_killed_for_its_memory_is_known(tmp_path: Path, tree, file):
    groups = found(tree(tmp_path))
    assert not groups.ran_out_of_memory("box")
    (tmp_path / file).write_text("under_oom 0\noom_kill 0\n")
    assert not groups.ran_out_of_memory("box")
    (tmp_path / file).write_text("under_oom 0\noom_kill 3\n")
    assert groups.ran_out_of_memory("box")


def test_v2_has_one_group_and_its_parents_hand_the_controllers_down(tmp_path: Path):
    groups = found(v2(tmp_path))
    assert groups.version == 2
    groups.make_parent()
    groups.limit("box", memory_bytes=64 * MIB, pids=9, cpus=0.25)
    box = tmp_path / "stillroom" / "box"
    assert {n: (box / n).read_text() for n in V2_FILES} == {
        "memory.max": str(64 * MIB),
        "memory.swap.max": "0",
        "pids.max": "9",
        "cpu.max": "25000 100000",
    }
    for folder in (tmp_path, tmp_path / "stillroom"):
        assert "+" in (folder / "cgroup.subtree_control").read_text()


def test_a_hybrid_machine_s_v1_controllers_are_used(tmp_path: Path):
    v1(tmp_path)
    (tmp_path / "unified").mkdir()
    (tmp_path / "unified" / "cgroup.controllers").write_text("\n")
    assert found(tmp_path).version == 1


@pytest.mark.parametrize("controllers", ["", "cpu io", "memory", "pids cpu"])
def test_a_v2_machine_that_cannot_limit_memory_and_pids_has_no_groups(tmp_path, controllers):
    assert detect(str(v2(tmp_path, controllers=controllers))) is None


def test_a_machine_without_controllers_has_no_groups(tmp_path: Path):
    assert detect(str(tmp_path)) is None
    assert detect(str(tmp_path / "none")) is None
    (tmp_path / "memory").mkdir()
    assert detect(str(tmp_path)) is None


def test_v1_without_cpu_still_limits_memory_and_pids(tmp_path: Path):
    v1(tmp_path)
    for path in sorted((tmp_path / "cpu").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (tmp_path / "cpu").rmdir()
    groups = found(tmp_path)
    groups.limit("box", memory_bytes=MIB, pids=9, cpus=1)
    assert len(groups.paths("box")) == 2


@pytest.mark.parametrize("name", ["memory.limit_in_bytes", "pids.max"])
def test_a_limit_that_has_to_hold_and_cannot_is_an_error(tmp_path: Path, name: str):
    groups = found(v1(tmp_path, without=name))
    with pytest.raises(OSError, match=f"{name} is missing"):
        groups.limit("box", memory_bytes=MIB, pids=9, cpus=1)


def test_swap_accounting_is_used_only_where_the_kernel_has_it(tmp_path: Path):
    groups = found(v1(tmp_path, without="memory.memsw.limit_in_bytes"))
    groups.limit("box", memory_bytes=MIB, pids=9, cpus=1)


def test_the_processes_of_a_box_are_those_of_all_its_groups(tmp_path: Path):
    groups = found(v1(tmp_path))
    (tmp_path / "memory" / "stillroom" / "box" / "cgroup.procs").write_text("7\n5\n")
    (tmp_path / "pids" / "stillroom" / "box" / "cgroup.procs").write_text("5\n6\n")
    assert groups.processes("box") == [5, 6, 7]
    assert groups.processes("other") == []


def test_joining_writes_to_every_group(tmp_path: Path):
    groups = found(v1(tmp_path))
    join(groups.paths("box"))
    assert {(Path(p) / "cgroup.procs").read_text() for p in groups.paths("box")} == {"0"}


def test_groups_are_listed_and_removed_once_they_are_empty(tmp_path: Path):
    groups = Cgroups((str(tmp_path / "memory"), str(tmp_path / "pids")), 1)
    for path in groups.paths("a"):
        Path(path).mkdir(parents=True)
    Path(groups.paths("b")[1]).mkdir(parents=True)
    assert groups.boxes() == {"a", "b"}
    groups.remove("a")
    groups.remove("b")
    groups.remove("never-there")
    assert groups.boxes() == set()


@pytest.mark.parametrize(
    ("tree", "file", "value"),
    [
        (v1, "memory/stillroom/box/memory.force_empty", "0"),
        (v2, "stillroom/box/memory.reclaim", "77"),
    ],
)
def test_what_only_a_box_had_in_memory_is_put_out(tmp_path: Path, tree, file: str, value: str):
    (tree(tmp_path) / file).write_text("")
    if tree is v1:
        (tmp_path / "memory/stillroom/box/memory.swappiness").write_text("60")
    else:
        (tmp_path / "stillroom/box/memory.current").write_text("77\n")
    groups = detect(str(tmp_path))
    assert groups is not None
    groups.put_out("box")
    assert (tmp_path / file).read_text() == value


def test_a_group_that_stays_busy_is_an_error_in_the_end(tmp_path: Path):
    groups = found(v1(tmp_path))
    with pytest.raises(OSError, match="not empty"):
        groups.remove("box", seconds=0)


def test_usage_is_read_from_the_controllers_that_know(tmp_path: Path):
    groups = found(v1(tmp_path))
    box = tmp_path / "{}" / "stillroom" / "box"

    def say(controller: str, name: str, text: str) -> None:
        path = Path(str(box).format(controller))
        path.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)

    assert groups.usage("box") == Usage()
    say("memory", "memory.usage_in_bytes", "4096\n")
    say("memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    say("pids", "pids.current", "7\n")
    say("pids", "pids.events", "max 3\n")
    say("cpuacct", "cpuacct.usage", "1500000000\n")
    groups = found(tmp_path)
    assert groups.usage("box") == Usage(
        memory_bytes=4096, processes=7, cpu_seconds=1.5, oom_kills=2, forks_refused=3
    )


def test_v2_usage_is_read_from_its_one_group(tmp_path: Path):
    groups = found(v2(tmp_path))
    box = tmp_path / "stillroom" / "box"
    for name, text in {
        "memory.current": "8192\n",
        "memory.events": "low 0\nmax 9\noom 1\noom_kill 1\n",
        "pids.current": "2\n",
        "pids.events": "max 5\n",
        "cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
    }.items():
        (box / name).write_text(text)
    assert groups.usage("box") == Usage(
        memory_bytes=8192, processes=2, cpu_seconds=2.5, oom_kills=1, forks_refused=5
    )


def test_freezing_writes_to_the_freezer_and_waits_for_it(tmp_path: Path):
    v1(tmp_path)
    state = tmp_path / "freezer" / "stillroom" / "box" / "freezer.state"
    state.parent.mkdir(parents=True)
    state.write_text("THAWED\n")
    groups = found(tmp_path)
    assert groups.can_freeze
    groups.freeze("box")
    assert state.read_text().startswith("FROZEN")
    groups.thaw("box")
    assert state.read_text().startswith("THAWED")


def test_v1_without_a_freezer_cannot_freeze(tmp_path: Path):
    assert not found(v1(tmp_path)).can_freeze


def test_v2_freezes_its_group(tmp_path: Path):
    groups = found(v2(tmp_path))
    box = tmp_path / "stillroom" / "box"
    (box / "cgroup.freeze").write_text("0")
    (box / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    assert groups.can_freeze
    groups.freeze("box")
    assert (box / "cgroup.freeze").read_text() == "1"


@pytest.mark.parametrize(
    ("tree", "unified", "kind"), [(v1, False, "v1"), (v1, True, "hybrid"), (v2, False, "v2")]
)
def test_the_kind_of_a_machine_is_told(tmp_path: Path, tree, kind: str, *, unified: bool):
    tree(tmp_path)
    if unified:
        (tmp_path / "unified").mkdir()
    assert found(tmp_path).kind == kind


def test_a_user_with_a_delegated_v2_group_gets_it_and_moves_out_of_its_top(tmp_path: Path):
    own = tmp_path / "own"
    own.write_text("12:pids:/x\n0::/user.slice/session\n")
    top = tmp_path / "fs" / "user.slice" / "session"
    (top / "stillroom").mkdir(parents=True)
    (top / "stillroom-us").mkdir()
    (top / "stillroom-us" / "cgroup.procs").write_text("")
    (top / "cgroup.controllers").write_text("memory pids\n")
    for folder in (top, top / "stillroom"):
        (folder / "cgroup.subtree_control").write_text("")
    groups = delegated(str(tmp_path / "fs"), own=str(own))
    assert groups is not None
    assert groups.folders == (str(top),)
    assert (top / "stillroom-us" / "cgroup.procs").read_text() == str(os.getpid())


@pytest.mark.parametrize("said", ["", "3:memory:/a\n", "0::/nowhere\n"])
def test_a_user_without_one_gets_none(tmp_path: Path, said: str):
    own = tmp_path / "own"
    own.write_text(said)
    assert delegated(str(tmp_path / "fs"), own=str(own)) is None
