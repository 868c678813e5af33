"""Memory: the smaller of what machine and control groups leave, and a refusal in numbers."""

from __future__ import annotations

import pytest

from edgert.device.memory import Available, available_bytes, in_units, require
from edgert.errors import ResourceError

MIB = 1 << 20


@pytest.fixture
def machine(tmp_path):
    """A version 2 machine with 100 MiB available and a group of the given limit and usage."""

    def build(limit: object, used: int):
        files = {
            "proc/meminfo": "MemTotal: 999999 kB\nMemFree: 1 kB\nMemAvailable:   102400 kB",
            "proc/self/cgroup": "0::/job",
            "proc/self/mountinfo": "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
            "sys/fs/cgroup/job/memory.max": limit,
            "sys/fs/cgroup/job/memory.current": used,
        }
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{content}\n")
        return tmp_path

    return build


@pytest.mark.parametrize(("limit", "used"), [("max", 0), (500 * MIB, MIB)])
def test_the_machine_bounds_it_where_the_group_leaves_more(machine, limit, used):
    assert available_bytes(machine(limit, used)) == (100 * MIB, "MemAvailable of this machine")


def test_the_group_bounds_it_where_it_leaves_less(machine):
    found = available_bytes(machine(64 * MIB, 24 * MIB))
    assert found == (40 * MIB, "control group /job uses 24.0 MiB of its 64.0 MiB")


def test_this_machine_has_some():
    assert available_bytes().bytes > 0


def test_what_fits_is_let_through():
    require(10, Available(10, "why"), "rings", "mend")


def test_what_does_not_fit_is_refused_with_both_numbers_and_the_mend():
    with pytest.raises(ResourceError) as caught:
        require(8 * MIB, Available(MIB, "why not"), "rings of 'detect'", "Lower `limits.in_flight`")
    assert str(caught.value) == (
        "rings of 'detect': 8.0 MiB of memory are needed and 1.0 MiB can be had (why not). "
        "Lower `limits.in_flight`."
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1536, "1.5 KiB"),
        (3 << 40, "3.0 TiB"),
        (1 << 60, "1048576.0 TiB"),
    ],
)
def test_bytes_are_said_in_units(count, said):
    assert in_units(count) == said
