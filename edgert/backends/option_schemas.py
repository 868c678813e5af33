"""Options of the runtimes, looked at before the run and without any vendor's library.

What OpenVINO's properties are, its library alone knows, device by device: they are looked at when
a device is opened.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgert.backends.registry import candidates, options_for, parse_device, scope_of
from edgert.errors import DeviceError, Fault

# Runtime -> a module that imports no vendor's library, with NAMES of options and ``read``.
SCHEMAS = {
    "onnxruntime": "edgert.backends.onnxruntime_options",
    "tflite": "edgert.backends.tflite_options",
    "emulated": "edgert.backends.emulated_options",
}


def faults_of(
    options: Mapping[str, Any],
    devices: Sequence[str],
    format: str,  # noqa: A002  the models' word
    place: str,
) -> Iterator[Fault]:
    """Find options that a runtime will refuse, whatever device it finds.

    An option that is written for all devices may be unknown to a runtime as long as another one
    is tried, too.

    Args:
        options: As written, with those of a runtime or device under its name.
        devices: As written; each names a device.
        format: As in ``ModelDescription``: it says who tries a device without a runtime's name.
        place: With which a fault begins.
    """
    tried = [(name, parse_device(text)[1]) for text in devices for name in candidates(text, format)]
    is_alone = len({runtime for runtime, _ in tried}) == 1
    shared = {key for key in options if scope_of(key) is None}
    told: set[tuple[str, str]] = set()
    for runtime, device in tried:
        if runtime not in SCHEMAS:
            continue
        schema = importlib.import_module(SCHEMAS[runtime])
        meant = {
            key: value
            for key, value in options_for(options, runtime, device).items()
            if is_alone or key in schema.NAMES or key not in shared
        }
        for fault in _refused(schema, meant, f"{place}, device '{runtime}:{device}'"):
            if (fault.fault, fault.mend) not in told:
                told.add((fault.fault, fault.mend))
                yield fault


def _refused(schema: Any, given: Mapping[str, Any], place: str) -> tuple[Fault, ...]:
    try:
        schema.read(given, place)
    except DeviceError as error:
        return error.faults
    return ()
