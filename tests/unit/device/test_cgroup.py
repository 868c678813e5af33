"""Limits of control groups, read from trees as kernels, hosts and containers show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgert.device import cgroup
from edgert.device.cgroup import MemoryLimit

V2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
)
HYBRID = V1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
OTHER = "22 1 8:1 / / rw,relatime - ext4 /dev/root rw\n"
NO_LIMIT_V1 = 9223372036854771712


@pytest.fixture
def root(tmp_path):
    def build(mounts: str, groups: str, files: dict[str, object]) -> Path:
        named = {"proc/self/mountinfo": OTHER + mounts, "proc/self/cgroup": groups}
        named |= {f"sys/fs/cgroup/{name}": content for name, content in files.items()}
        for name, content in named.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{content}\n")
        return tmp_path

    return build


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"a/b/cpu.max": "max 100000"}, None),
        ({"a/b/cpu.max": "150000 100000"}, 1.5),
        ({"a/b/cpu.max": "400000 100000", "a/cpu.max": "50000 100000"}, 0.5),
        ({"a/b/cpu.max": "max 100000", "a/cpu.max": "200000 50000"}, 4.0),
    ],
)
def test_version_2_quota_is_the_smallest_of_the_branch(root, files, quota):
    assert cgroup.cpu_quota(root(V2, "0::/a/b", files)) == quota


@pytest.mark.parametrize("mounts", [V1, HYBRID])
@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu,cpuacct/a/cpu.cfs_quota_us": -1}, None),
        (
            {"cpu,cpuacct/a/cpu.cfs_quota_us": 250000, "cpu,cpuacct/a/cpu.cfs_period_us": 100000},
            2.5,
        ),
        (
            {
                "cpu,cpuacct/a/cpu.cfs_quota_us": -1,
                "cpu,cpuacct/cpu.cfs_quota_us": 50000,
                "cpu,cpuacct/cpu.cfs_period_us": 50000,
            },
            1.0,
        ),
    ],
)
def test_version_1_quota_also_beside_version_2(root, mounts, files, quota):
    groups = "4:memory:/m\n3:cpu,cpuacct:/a\n9:name=systemd:/s\n0::/u"
    assert cgroup.cpu_quota(root(mounts, groups, files)) == quota


def test_version_2_memory_does_not_count_what_the_kernel_can_let_go(root):
    files = {
        "a/memory.max": 1000,
        "a/memory.current": 700,
        "a/memory.stat": "anon 100\ninactive_file 400\nactive_file 200",
    }
    found = cgroup.memory_limit(root(V2, "0::/a", files))
    assert found == MemoryLimit("/a", 1000, 300)
    assert found.free_bytes == 700


def test_the_group_that_leaves_the_least_is_told(root):
    files = {
        "a/b/memory.max": 500,
        "a/b/memory.current": 100,
        "a/memory.max": 1000,
        "a/memory.current": 950,
        "memory.max": "max",
    }
    assert cgroup.memory_limit(root(V2, "0::/a/b", files)) == MemoryLimit("/a", 1000, 950)


def test_version_1_memory(root):
    files = {
        "memory/m/memory.limit_in_bytes": 1000,
        "memory/m/memory.usage_in_bytes": 400,
        "memory/m/memory.stat": "cache 5\ntotal_inactive_file 100",
        "memory/memory.limit_in_bytes": NO_LIMIT_V1,
        "memory/memory.usage_in_bytes": 99999,
    }
    found = cgroup.memory_limit(root(V1, "4:memory:/m\n0::/u", files))
    assert found == MemoryLimit("/m", 1000, 300)


def test_no_limit_is_none(root):
    files = {"memory/m/memory.limit_in_bytes": NO_LIMIT_V1, "memory/m/memory.usage_in_bytes": 1}
    assert cgroup.memory_limit(root(V1, "4:memory:/m", files)) is None


def test_more_used_than_allowed_leaves_nothing(root):
    files = {"a/memory.max": 100, "a/memory.current": 200}
    found = cgroup.memory_limit(root(V2, "0::/a", files))
    assert found is not None
    assert found.free_bytes == 0


def test_a_container_sees_its_own_part_of_the_host(root):
    """Without a namespace of its own, /proc/self/cgroup names the host's path."""
    mounts = "35 31 0:32 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    files = {
        "memory/memory.limit_in_bytes": 2000,
        "memory/memory.usage_in_bytes": 500,
        "memory/sub/memory.limit_in_bytes": 1500,
        "memory/sub/memory.usage_in_bytes": 100,
    }
    found = cgroup.memory_limit(root(mounts, "4:memory:/docker/x/sub", files))
    assert found == MemoryLimit("/sub", 1500, 100)


def test_a_mount_of_another_branch_is_read_at_its_top(root):
    mounts = "29 23 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    found = cgroup.memory_limit(root(mounts, "0::/../y", {"memory.max": 10, "memory.current": 4}))
    assert found == MemoryLimit("/", 10, 4)


def test_a_machine_without_control_groups_has_no_limits(tmp_path):
    assert cgroup.cpu_quota(tmp_path) is None
    assert cgroup.memory_limit(tmp_path) is None


def test_this_machine_can_be_read():
    quota = cgroup.cpu_quota()
    assert quota is None or quota > 0
    limit = cgroup.memory_limit()
    assert limit is None or limit.limit_bytes > 0


@pytest.mark.parametrize(
    ("mounts", "groups", "files", "count"),
    [
        (V2, "0::/a", {"a/memory.events": "low 0\noom 3\noom_kill 2"}, 2),
        (V1, "4:memory:/m", {"memory/m/memory.oom_control": "under_oom 0\noom_kill 5"}, 5),
        (V2, "0::/a", {}, 0),
        ("", "", {}, 0),
    ],
)
def test_kills_for_want_of_memory_are_counted(root, mounts, groups, files, count):
    assert cgroup.oom_kills(root(mounts, groups, files)) == count
