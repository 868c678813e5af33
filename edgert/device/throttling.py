"""Whether the cores are held back: by a control group's quota, or because they are too hot.

quota    cpu.stat of each group of the branch: how often, and for how long
heat     thermal_throttle/*_count of each core (x86); cooling devices that slow a processor down
clocks   cores whose scaling_max_freq is below cpuinfo_max_freq
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from edgert.device import cgroup

# What the thermal core slows down, by the names its drivers give (cooling_device*/type).
_COOLED = ("thermal-cpufreq", "cpufreq", "processor", "thermal-devfreq", "devfreq")


class Throttling(NamedTuple):
    """What has been counted since the machine was started, and how it is now.

    Attributes:
        quota_periods: Periods in which a quota was used up.
        quota_s: How long cores were held back for that, all cores added up.
        hot_events: How often cores said that they were too hot.
        cooled: Names of what is slowed down because of heat now.
        capped: Core -> its highest frequency now as a share of what it can do, where that is less.
    """

    quota_periods: int
    quota_s: float
    hot_events: int
    cooled: tuple[str, ...]
    capped: dict[int, float]


def read(root: Path = Path("/")) -> Throttling:
    """Return what the kernel tells; what it does not tell is zero.

    Args:
        root: Where /proc and /sys are found.
    """
    held_back = cgroup.cpu_throttling(root)
    cores = root / "sys/devices/system/cpu"
    return Throttling(
        held_back.periods,
        held_back.seconds,
        sum(map(_number, cores.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")))
        + max(
            map(_number, cores.glob("cpu[0-9]*/thermal_throttle/package_throttle_count")), default=0
        ),
        tuple(_cooled(root / "sys/class/thermal")),
        _capped(cores),
    )


def _cooled(folder: Path) -> list[str]:
    found = []
    for device in sorted(folder.glob("cooling_device*")):
        name = _text(device / "type")
        if name.lower().startswith(_COOLED) and _number(device / "cur_state") > 0:
            found.append(name)
    return found


def _capped(cores: Path) -> dict[int, float]:
    capped = {}
    for folder in cores.glob("cpu[0-9]*/cpufreq"):
        now, most = _number(folder / "scaling_max_freq"), _number(folder / "cpuinfo_max_freq")
        if 0 < now < most:
            capped[int(folder.parent.name.removeprefix("cpu"))] = round(now / most, 2)
    return dict(sorted(capped.items()))


def _number(file: Path) -> int:
    text = _text(file)
    return int(text) if text.isdecimal() else 0


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:  # not there, or not told by this driver
        return ""
