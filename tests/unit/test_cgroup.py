"""Limits, written to fake trees of each kind that kernels have."""

from pathlib import Path

import pytest

from sandbox.runtime.embedded.cgroup import Cgroups, detect, join

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


def test_a_group_that_stays_busy_is_an_error_in_the_end(tmp_path: Path):
    groups = found(v1(tmp_path))
    with pytest.raises(OSError, match="not empty"):
        groups.remove("box", seconds=0)
