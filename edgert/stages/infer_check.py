"""What can be wrong between a model, what arrives at it and the options of ``infer``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgert.backends.registry import parse_device
from edgert.errors import Fault, UserError
from edgert.models.describe import ModelDescription
from edgert.tensor import PortSpec, TensorSpec


def device_faults(devices: Sequence[str], place: str) -> list[Fault]:
    """Find devices that name no runtime of ours."""
    faults = []
    if not devices:
        faults.append(Fault(f"{place}, device", "no device is named", "Write: device: [CPU]"))
    for text in devices:
        try:
            parse_device(text)
        except UserError as error:
            faults += [
                Fault(f"{place}, device {text!r}", fault.fault, fault.mend)
                for fault in error.faults
            ]
    return faults


def input_faults(model: ModelDescription, port: PortSpec, place: str) -> list[Fault]:
    """Find inputs that are open, or that what arrives on ``port`` does not fit."""
    faults = []
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
        elif given != wanted:
            arrives = f"arrives as {given}" if given else "does not arrive"
            there = f"What arrives: {', '.join(port.tensors)}" if not given else ""
            faults.append(
                Fault(
                    f"{place}, input 'tensor'",
                    f"{name!r} {arrives}, and model {model.name!r} needs {wanted}",
                    there,
                )
            )
    return faults


def output_faults(
    model: ModelDescription, limits: Mapping[str, list[int]], place: str
) -> list[Fault]:
    """Find outputs without a largest size, and limits that fit no output."""
    faults = [
        Fault(
            f"{place}, max_output",
            f"model {model.name!r} has no output {name!r}",
            f"Its outputs: {', '.join(model.outputs)}",
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
