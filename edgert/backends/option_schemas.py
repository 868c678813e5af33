"""Options of the runtimes, looked at before the run.

No vendor's library is imported here. What OpenVINO's properties are, its library alone knows,
device by device: a child is asked, and only where something is written that may be one.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from edgert.backends.option_names import names_of
from edgert.backends.options import unknown_option
from edgert.backends.registry import candidates, is_installed, options_for, parse_device, scope_of
from edgert.errors import DeviceError, Fault, KeyFault

# Runtime -> a module that imports no vendor's library, with NAMES of options and ``read``.
SCHEMAS = {
    "onnxruntime": "edgert.backends.onnxruntime_options",
    "tflite": "edgert.backends.tflite_options",
    "emulated": "edgert.backends.emulated_options",
}

_Attempt = tuple[str, str]  # runtime and device
_Path = tuple[str, ...]  # an option's name, behind that of the runtime or device it stands under
_Names = Mapping[_Attempt, Collection[str]]


def faults_of(
    options: Mapping[str, Any],
    devices: Sequence[str],
    format: str,  # noqa: A002  the models' word
    place: str,
) -> Iterator[Fault]:
    """Find options that none of those for whom they are meant knows, and values that are none.

    An option is known as long as one of them may know it; one that is not here may.

    Args:
        options: As written, with those of a runtime or device under its name.
        devices: As written; each names a device.
        format: As in ``ModelDescription``: it says who tries a device without a runtime's name.
        place: With which a fault begins.
    """
    tried = [(name, parse_device(text)[1]) for text in devices for name in candidates(text, format)]
    yield from _bad_values(options, tried, place)
    names = _names(options, tried)
    for path in _paths(options):
        meant = [attempt for attempt in tried if _is_for(path, attempt)]
        known = {name for attempt in meant for name in names.get(attempt, ())}
        if meant and path[-1] not in known and all(attempt in names for attempt in meant):
            error = unknown_option(path[-1], known, _place_of(meant, place))
            yield replace(error.fault, path=path)


def _names(options: Mapping[str, Any], tried: Sequence[_Attempt]) -> _Names:
    """Return what each can be told, as far as it is known; none is asked without need."""
    known: dict[_Attempt, Collection[str]] = {
        attempt: _schema(attempt).NAMES for attempt in tried if attempt[0] in SCHEMAS
    }
    unread = [
        path
        for path in _paths(options)
        if not any(_is_for(path, attempt) and path[-1] in known[attempt] for attempt in known)
    ]
    others = [
        attempt
        for attempt in tried
        if attempt not in known and any(_is_for(path, attempt) for path in unread)
    ]
    for runtime in dict.fromkeys(runtime for runtime, _ in others):
        devices = tuple(device for name, device in others if name == runtime)
        found = names_of(runtime, devices) if is_installed(runtime) else {}
        known |= {(runtime, device): names for device, names in found.items()}
    return known


def _paths(options: Mapping[str, Any]) -> Iterator[_Path]:
    for key, value in options.items():
        if scope_of(key) is None:
            yield (key,)
        else:
            yield from ((key, own) for own in value)


def _is_for(path: _Path, attempt: _Attempt) -> bool:
    return len(path) == 1 or path[0] in (attempt[0], ":".join(attempt))


def _place_of(meant: Sequence[_Attempt], place: str) -> str:
    """Name the first of those who are meant, unless they are of several runtimes."""
    if len({runtime for runtime, _ in meant}) > 1:
        return place
    return f"{place}, device '{':'.join(meant[0])}'"


def _bad_values(
    options: Mapping[str, Any], tried: Sequence[_Attempt], place: str
) -> Iterator[Fault]:
    told: set[tuple[str, str]] = set()
    for attempt in tried:
        if attempt[0] not in SCHEMAS:
            continue
        schema = _schema(attempt)
        every = options_for(options, *attempt)
        given = {key: value for key, value in every.items() if key in schema.NAMES}
        for fault in _refused(schema, given, f"{place}, device '{':'.join(attempt)}'"):
            if (fault.fault, fault.mend) not in told:
                told.add((fault.fault, fault.mend))
                yield _where_written(fault, options, attempt)


def _refused(schema: Any, given: Mapping[str, Any], place: str) -> tuple[Fault, ...]:
    try:
        schema.read(given, place)
    except DeviceError as error:
        return error.faults
    return ()


def _where_written(fault: Fault, options: Mapping[str, Any], attempt: _Attempt) -> Fault:
    """Lead the path of an option to where this device has it from."""
    if not isinstance(fault, KeyFault) or not fault.path:
        return fault
    scopes = (":".join(attempt), attempt[0])
    above = next((scope for scope in scopes if fault.path[0] in options.get(scope, {})), None)
    return fault if above is None else replace(fault, path=(above, *fault.path))


def _schema(attempt: _Attempt) -> Any:
    return importlib.import_module(SCHEMAS[attempt[0]])
