"""Names of a device's options that its runtime's library alone knows: asked in a child."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from functools import cache

from edgert import isolate
from edgert.backends.base import NamesOptions
from edgert.backends.registry import backend
from edgert.errors import DeviceError, EdgertError

log = logging.getLogger(__name__)

ASK_TIMEOUT_S = 20.0


@cache  # a driver that hangs costs its time once, however many stages there are
def names_of(runtime: str, devices: tuple[str, ...]) -> Mapping[str, frozenset[str]]:
    """Return the names of the options that devices take.

    A device that is not here, or whose runtime cannot say, is left out: why, is told by whoever
    opens it.

    Args:
        runtime: A runtime that is installed.
        devices: In the runtime's own words.
    """
    arguments = {"runtime": runtime, "devices": list(devices)}
    function, place = f"{__name__}:{ask.__name__}", f"backend {runtime!r}"
    try:
        answer = isolate.call(function, arguments, ASK_TIMEOUT_S, place, DeviceError)
    except EdgertError as error:
        log.debug("names of options are not known: %s", error)
        return {}
    return {device: frozenset(names) for device, names in answer.items()}


def ask(runtime: str, devices: list[str]) -> dict[str, list[str]]:
    """Return the names of the options of those devices that are here; meant for a child process.

    Raises:
        DeviceError: As ``registry.backend``.
    """
    asked = backend(runtime)
    found: dict[str, list[str]] = {}
    if not isinstance(asked, NamesOptions):
        return found
    for device in devices:
        with contextlib.suppress(DeviceError):
            found[device] = sorted(asked.option_names(device))
    return found
