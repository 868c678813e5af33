"""``bench link``: what a frame's way to another process and back costs, beside the kernel's floor.

Two processes, pinned to two cores, send a frame there through one ring and back through another,
with the very rings, joins and tokens that stages use. The floor is the least that two processes can
do to wake each other, a bare eventfd written and read in turn; it is measured in the same run,
block by block between the frames' sizes, so that a machine that slows down slows all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgert import isolate
from edgert.device import cores, memory

# 4 KiB, a 1080p and a 4K picture in I420.
SIZES = (4096, 1920 * 1080 * 3 // 2, 3840 * 2160 * 3 // 2)
# A writer's loan, a frame that waits, a frame that is held.
SLOTS = 3
PROCESS = "edgert.bench.link_process:measure"
_AT_MOST_S_A_ROUND = 0.05
_START_WITHIN_S = 60.0


class RoundTrip(msgspec.Struct, frozen=True):
    """Microseconds of a round trip."""

    p50: float
    p99: float


class LinkReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, ``edgert.bench.link/1``.

    Attributes:
        floor_us: Median round trip by bare eventfd.
        round_trip_us: Round trip by size of the frame in bytes.
        rounds: Round trips of each.
        cores: Core of each of the two processes.
    """

    schema: str = "edgert.bench.link/1"
    floor_us: float
    round_trip_us: dict[str, RoundTrip]
    rounds: int
    cores: tuple[int, int]

    def times_floor(self, size: int) -> float:
        """Return how many times the floor a round trip of ``size`` takes."""
        return self.round_trip_us[str(size)].p50 / self.floor_us

    @property
    def growth(self) -> float:
        """The largest frame's round trip over the smallest one's: 1 where nothing is copied."""
        return self.round_trip_us[str(SIZES[-1])].p50 / self.round_trip_us[str(SIZES[0])].p50


def bench_link(rounds: int, sizes: Sequence[int] = SIZES) -> LinkReport:
    """Measure the round trip of frames between two processes.

    Args:
        rounds: Round trips of each size, and of the floor.
        sizes: Bytes of the frames.

    Raises:
        ResourceError: There is too little memory for the rings.
        RunError: One of the two processes ended or hung.
    """
    memory.require(
        2 * SLOTS * sum(sizes), memory.available_bytes(), "rings of bench link", "Free some memory"
    )
    pair = two_cores(cores.allowed())
    found = isolate.call(
        PROCESS,
        {"sizes": list(sizes), "rounds": rounds, "slots": SLOTS, "cores": pair},
        timeout_s=_START_WITHIN_S + rounds * (len(sizes) + 1) * _AT_MOST_S_A_ROUND,
        place="bench link",
    )
    return LinkReport(
        floor_us=_percentile_us(found["floor"], 0.5),
        round_trip_us={
            str(size): RoundTrip(_percentile_us(times, 0.5), _percentile_us(times, 0.99))
            for size, times in zip(sizes, found["round_trips"], strict=True)
        },
        rounds=rounds,
        cores=pair,
    )


def two_cores(allowed: Sequence[int]) -> tuple[int, int]:
    """Return a core for each process; the same one twice where there is no other."""
    return allowed[0], allowed[min(1, len(allowed) - 1)]


def _percentile_us(times_ns: Sequence[int], share: float) -> float:
    ordered = sorted(times_ns)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1e3, 2)
