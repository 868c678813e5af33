"""How many inferences ``infer`` keeps in flight where the file leaves it open."""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgert.backends.registry import parse_device
from edgert.stages.base import PlanContext

# The attribute of the output port that tells the worker, and the plan's readers, the number.
REQUESTS = "requests"
MOST = 64
_PARTS = re.compile("[:,.]")
_ACCELERATOR = 2  # one at work, and the next one ready


def planned_requests(asked: int | str, devices: Sequence[str], context: PlanContext) -> int:
    """Return the number of requests in flight: as asked for, or what keeps the devices busy.

    The CPU computes as many at once as it has threads; one more is ready, so that none of them
    waits for its next frame. Measured on two cores (YOLOX-nano, OpenVINO): two requests left them
    idle for 3.2 % of the time, three for 0.7 %, and four were no better. Never more than there are
    frames in flight. The plan sizes slots by it before any device has been tried, so the device
    that needs most decides.
    """
    if isinstance(asked, int):
        return asked
    wanted = max(_wanted(device, context.threads) for device in devices)
    frames = context.in_flight * max(1, len(context.streams))
    return min(wanted, frames, MOST)


def _wanted(device: str, threads: int) -> int:
    # Also where the CPU is one of several, or a provider's hardware: HETERO:GPU,CPU; OpenVINO.CPU.
    named = _PARTS.split(parse_device(device)[1].upper())
    return threads + 1 if "CPU" in named else _ACCELERATOR
