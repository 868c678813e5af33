"""Threads follow the stage's cores, the mask and the quota, whichever is smallest."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from edgert.device.limits import thread_count


@pytest.fixture
def quota(tmp_path):
    """A tree with a version 2 quota."""

    def build(cpu_max: str):
        files = {
            "proc/self/cgroup": "0::/job",
            "proc/self/mountinfo": "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
            "sys/fs/cgroup/job/cpu.max": cpu_max,
        }
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        return tmp_path

    return build


@pytest.mark.parametrize(
    ("cpu_max", "threads"),
    [("max 100000", 8), ("1000 100000", 1), ("100000 100000", 1), ("110000 100000", 2)],
)
def test_the_quota_rounded_up_bounds_it(quota, cpu_max, threads):
    expected = min(threads, len(os.sched_getaffinity(0)))
    assert thread_count(tuple(range(8)), quota(cpu_max)) == expected


def test_the_stage_has_no_more_threads_than_cores(quota):
    assert thread_count((0,), quota("max 100000")) == 1


def test_the_mask_bounds_it_whatever_the_machine_has():
    """Row T1 of the field: a mask smaller than the machine."""
    first = min(os.sched_getaffinity(0))
    code = "from edgert.device.limits import thread_count; print(thread_count(tuple(range(64))))"
    done = subprocess.run(
        ["taskset", "-c", str(first), sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == "1\n"
