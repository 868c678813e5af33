from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edgert.device import throttling
from edgert.device.throttling import Throttling

from .trees import write

CORES = "sys/devices/system/cpu"


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    assert throttling.read(tmp_path) == Throttling(0, 0.0, 0, (), {})


def test_quotas_of_every_group_of_the_branch_count(tmp_path: Path) -> None:
    mounts = "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
    groups = {
        "proc/self/mountinfo": mounts,
        "proc/self/cgroup": "0::/a/b",
        "sys/fs/cgroup/cpu.stat": "usage_usec 1",  # the root has no quota
        "sys/fs/cgroup/a/cpu.stat": "nr_periods 9\nnr_throttled 2\nthrottled_usec 250000",
        "sys/fs/cgroup/a/b/cpu.stat": "nr_periods 9\nnr_throttled 3\nthrottled_usec 1000000",
    }
    found = throttling.read(write(tmp_path, groups))
    assert (found.quota_periods, found.quota_s) == (5, 1.25)


def test_heat_and_clocks(tmp_path: Path) -> None:
    files = {
        f"{CORES}/cpu0/thermal_throttle/core_throttle_count": 3,
        f"{CORES}/cpu1/thermal_throttle/core_throttle_count": 4,
        f"{CORES}/cpu0/thermal_throttle/package_throttle_count": 5,
        f"{CORES}/cpu1/thermal_throttle/package_throttle_count": 5,
        f"{CORES}/cpu0/cpufreq/scaling_max_freq": 1200000,
        f"{CORES}/cpu0/cpufreq/cpuinfo_max_freq": 2400000,
        f"{CORES}/cpu1/cpufreq/scaling_max_freq": 2400000,
        f"{CORES}/cpu1/cpufreq/cpuinfo_max_freq": 2400000,
        "sys/class/thermal/cooling_device0/type": "thermal-cpufreq-0",
        "sys/class/thermal/cooling_device0/cur_state": 2,
        "sys/class/thermal/cooling_device1/type": "pwm-fan",
        "sys/class/thermal/cooling_device1/cur_state": 1,
        "sys/class/thermal/cooling_device2/type": "Processor",
        "sys/class/thermal/cooling_device2/cur_state": 0,
    }
    found = throttling.read(write(tmp_path, files))
    assert found.hot_events == 12
    assert found.cooled == ("thermal-cpufreq-0",)
    assert found.capped == {0: 0.5}


QUOTAS = {  # of version 2 and of version 1: a tenth of one core
    "/sys/fs/cgroup": {"cpu.max": "10000 100000"},
    "/sys/fs/cgroup/cpu": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "10000"},
}


@contextmanager
def group_with(parent: str, files: dict[str, str]) -> Iterator[Path | None]:
    """A real control group with a quota; None where it cannot have one."""
    group = Path(parent, f"edgert-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        is_controlled = all((group / name).exists() for name in files)
        for name, value in files.items() if is_controlled else ():
            (group / name).write_text(value)
        yield group if is_controlled else None
    finally:
        group.rmdir()


@pytest.fixture
def tight_group() -> Iterator[Path]:
    for parent, files in QUOTAS.items():
        with group_with(parent, files) as group:
            if group:
                yield group
                return
    pytest.skip("no control group with a quota can be made here")


BURN = """
import json, sys, time
from pathlib import Path
from edgert.device.throttling import read
Path(sys.argv[1], "cgroup.procs").write_text("0")
before = read()
ends_s = time.process_time() + 0.06
while time.process_time() < ends_s:
    pass
print(json.dumps([before, read()]))
"""


def test_a_real_quota(tight_group: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BURN, str(tight_group)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    before, after = (Throttling(*each) for each in json.loads(done.stdout))
    assert after.quota_periods > before.quota_periods
    assert after.quota_s > before.quota_s
