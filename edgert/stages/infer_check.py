"""What can be wrong between a model, what arrives at it and the options of ``infer``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from edgert.backends import option_schemas
from edgert.backends.base import ByteInput, Session
from edgert.backends.byte_input import CONVERTIBLE
from edgert.backends.options import UnknownOptionError
from edgert.backends.registry import READERS, is_for_one, parse_device, reads, scope_of
from edgert.errors import DeviceError, Fault, KeyFault, ModelError, UserError
from edgert.models.describe import ModelDescription
from edgert.tensor import PortSpec, TensorSpec

# The attribute of a port whose tensors are bytes that the model itself converts.
BYTE_INPUTS = "byte_inputs"
CONVERT_HERE = "Write 'convert: here' at the stage that makes it"


def device_faults(devices: Sequence[str], place: str, key: str = "device") -> list[Fault]:
    """Find devices that name no runtime of ours; ``key`` has them in the file."""
    faults: list[Fault] = []
    if not devices:
        mend = "Write: device: [CPU]"
        faults.append(KeyFault(f"{place}, device", "no device is named", mend, path=(key,)))
    for number, text in enumerate(devices):
        try:
            parse_device(text)
        except UserError as error:
            where, path = f"{place}, device {text!r}", (key, number)
            faults += [
                KeyFault(where, fault.fault, fault.mend, path=path) for fault in error.faults
            ]
    return faults


def format_faults(
    devices: Sequence[str],
    format: str,  # noqa: A002  the models' word
    place: str,
    key: str = "device",
) -> list[Fault]:
    """Find devices whose runtimes, all of them, do not read a model; one that does is enough."""
    if device_faults(devices, place):
        return []
    named = [parse_device(text)[0] for text in devices]
    if any(name is None or reads(name, format) for name in named):
        return []
    mend = f"Name a device of {' or '.join(READERS[format])}, which do"
    given = ", ".join(dict.fromkeys(filter(None, named)))
    fault = f"{given} reads no {format} model"
    return [KeyFault(f"{place}, device", fault, mend, path=(key,))]


def option_faults(
    options: Mapping[str, Any],
    devices: Sequence[str],
    format: str,  # noqa: A002  the models' word
    place: str,
) -> Iterator[Fault]:
    """Find options of what is not among the stage's devices, and those that a runtime refuses."""
    is_whole = not device_faults(devices, place)
    for key, value in options.items():
        scope = scope_of(key)
        where = f"{place}, options, {key!r}"
        if scope is None:
            continue
        if not any(_is_meant(scope, text) for text in devices):
            mend = f"Its devices: {', '.join(devices)}"
            fault = "the stage runs on no such device"
            yield KeyFault(where, fault, mend, path=("options", key), is_unknown=True)
        if not isinstance(value, Mapping):
            is_whole = False
            fault, mend = "it has to be options by name", f"Write: {key}: {{name: value}}"
            yield KeyFault(where, fault, mend, path=("options", key))
    if is_whole:
        yield from map(_in_options, option_schemas.faults_of(options, devices, format, place))


def refuse_mistake(
    error: UnknownOptionError,
    options: Mapping[str, Any],
    attempt: tuple[str, str],
    tried: Iterable[tuple[str, str]],
    place: str,
) -> None:
    """Refuse an option that no other device can be meant to know: the next must not hide it.

    Args:
        error: What the device said of it.
        options: As written.
        attempt: Runtime and device.
        tried: All that the stage tries.
        place: Of the stage.

    Raises:
        DeviceError: It is a mistake, whatever the other devices do.
    """
    if is_for_one(error.key, options, attempt, tried):
        place = f"{place}, device '{':'.join(attempt)}', options"
        raise DeviceError(place, error.faults[0].fault, error.faults[0].mend) from error


def _in_options(fault: Fault) -> Fault:
    """Lead the path of an option to where it stands in the stage."""
    return replace(fault, path=("options", *fault.path)) if isinstance(fault, KeyFault) else fault


def _is_meant(scope: tuple[str, str], text: str) -> bool:
    runtime, colon, device = text.strip().partition(":")
    runtime, device = (runtime, device) if colon else ("", runtime)
    return runtime in ("", scope[0]) and scope[1] in ("", device)


def input_faults(model: ModelDescription, port: PortSpec, place: str) -> list[Fault]:
    """Find inputs that are open, or that what arrives on ``port`` does not fit."""
    faults = []
    converted = byte_inputs(port)
    for name, wanted in model.inputs.items():
        given = port.tensors.get(name)
        if not wanted.is_static:
            sizes = ", ".join("N" if size is None else str(size) for size in wanted.shape)
            faults.append(
                Fault(
                    place,
                    f"model {model.name!r} leaves the size of its input {name!r} open: {wanted}",
                    f"Add 'shape: {{{name}: [{sizes}]}}' with a number for each N",
                )
            )
        elif not _fits_input(given, wanted, is_converted=name in converted):
            arrives = f"arrives as {given}" if given else "does not arrive"
            there = f"What arrives: {', '.join(port.tensors)}" if not given else ""
            if name in converted:
                there = CONVERT_HERE
            faults.append(
                Fault(
                    f"{place}, input 'tensor'",
                    f"{name!r} {arrives}, and model {model.name!r} needs {wanted}",
                    there,
                )
            )
    return faults


def byte_inputs(port: PortSpec) -> dict[str, ByteInput]:
    """Return what the model has to do with tensors that arrive as bytes, by their names."""
    return msgspec.convert(port.attributes.get(BYTE_INPUTS, {}), dict[str, ByteInput])


def refuse_other_inputs(session: Session, port: PortSpec, place: str) -> None:
    """Refuse a session that wants something else than arrives.

    Raises:
        ModelError: The model was replaced, or its backend does not build conversions in.
    """
    for name, spec in session.inputs.items():
        given = port.tensors.get(name)
        if given is None or given.plain != spec.plain:
            mend = CONVERT_HERE if name in byte_inputs(port) else ""
            fault = f"it wants {name!r} as {spec} there, and {given or 'nothing'} arrives"
            raise ModelError(f"{place}, model", fault, mend)


def _fits_input(given: TensorSpec | None, wanted: TensorSpec, *, is_converted: bool) -> bool:
    if given is None:
        return False
    if not is_converted:
        return given.plain == wanted.plain
    return given.plain == TensorSpec("u8", wanted.shape) and wanted.dtype in CONVERTIBLE


def output_faults(
    model: ModelDescription, limits: Mapping[str, list[int]], place: str
) -> list[Fault]:
    """Find outputs without a largest size, and limits that fit no output."""
    faults: list[Fault] = [
        KeyFault(
            f"{place}, max_output",
            f"model {model.name!r} has no output {name!r}",
            f"Its outputs: {', '.join(model.outputs)}",
            path=("max_output", name),
            is_unknown=True,
        )
        for name in limits
        if name not in model.outputs
    ]
    for name, spec in model.outputs.items():
        limit = limits.get(name)
        if spec.is_static or (limit and _fits(spec, limit)):
            continue
        sizes = ", ".join("N" if size is None else str(size) for size in spec.shape)
        faults.append(
            Fault(
                place,
                f"model {model.name!r} leaves the size of its output {name!r} open: {spec}",
                f"Add 'max_output: {{{name}: [{sizes}]}}' with the largest number for each N",
            )
        )
    return faults


def _fits(spec: TensorSpec, limit: list[int]) -> bool:
    return len(limit) == len(spec.shape) and all(
        wanted > 0 and size in (None, wanted)
        for size, wanted in zip(spec.shape, limit, strict=True)
    )
