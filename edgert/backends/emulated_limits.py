"""Models that an emulated accelerator refuses: for their operators, memory or open sizes."""

from __future__ import annotations

from collections.abc import Mapping

from edgert.backends.base import CompileRequest, Signature
from edgert.backends.binding import open_names
from edgert.backends.emulated_options import EmulatedOptions
from edgert.backends.emulated_precision import ITEM_BYTES
from edgert.backends.opcount import OperatorCount
from edgert.backends.placement import Placement
from edgert.backends.registry import is_installed
from edgert.errors import DeviceError, ModelError

_MB = 1e6


def place_model(request: CompileRequest, options: EmulatedOptions, place: str) -> Placement | None:
    """Say how much of the model the device takes; None where it was not asked.

    Raises:
        DeviceError: It has operators that the device lacks, or needs more memory than it has.
    """
    if options.operators is None and options.memory_mb is None:
        return None
    count = _count(request, place)
    if options.memory_mb is not None:
        _require_memory(count, options.memory_mb, options.precision or "f32", place)
    if options.operators is None:
        return None
    return _placed(count.operators, options, place)


def refuse_open_outputs(signature: Signature, options: EmulatedOptions, place: str) -> None:
    """Refuse a model whose outputs have another size each time.

    Raises:
        DeviceError: It is such a model; the option that forbids it is named.
    """
    for name in open_names(signature.outputs):
        said = f"the size of its output {name!r} is not known before: {signature.outputs[name]}"
        if not options.dynamic_shapes:
            raise DeviceError(f"{place}, options, dynamic_shapes", said)
        mend = "Write 'outputs: replayed'"
        raise DeviceError(f"{place}, options, outputs", f"not computed here: {said}", mend)


def _count(request: CompileRequest, place: str) -> OperatorCount:
    if not is_installed("openvino"):
        raise DeviceError(
            f"{place}, options",
            "operators and memory of a model are counted by OpenVINO",
            "Run: pip install 'edgert[openvino]'",
        )
    from edgert.backends.openvino import OpenVinoBackend

    try:
        return OpenVinoBackend().inspect(request.path, request.shapes)[1]
    except ModelError as error:
        raise DeviceError(
            f"{place}, options",
            "operators and memory of a model are counted by OpenVINO, which does not read this "
            f"one: {error.faults[0].fault}",
            "Leave out 'operators' and 'memory_mb'",
        ) from error


def _require_memory(count: OperatorCount, memory_mb: float, precision: str, place: str) -> None:
    if count.activations is None:
        raise DeviceError(
            f"{place}, options, memory_mb", "the model's sizes are open: its memory is not known"
        )
    item_bytes = ITEM_BYTES[precision]
    weights_mb = count.parameters * item_bytes / _MB
    activations_mb = count.activations * item_bytes / _MB
    if weights_mb + activations_mb > memory_mb:
        raise DeviceError(
            place,
            f"the model needs {weights_mb + activations_mb:.4g} MB at {precision} "
            f"(weights {weights_mb:.4g}, activations {activations_mb:.4g}), "
            f"and the device has {memory_mb:.4g} MB",
        )


def _placed(operators: Mapping[str, int], options: EmulatedOptions, place: str) -> Placement:
    total = sum(operators.values())
    lacking = {
        name: count for name, count in operators.items() if name not in (options.operators or ())
    }
    placement = Placement(total - sum(lacking.values()), total)
    if lacking and options.unsupported == "refuse":
        names = ", ".join(f"{name} ({count})" for name, count in lacking.items())
        mend = "'unsupported: cpu' has the CPU do the rest"
        raise DeviceError(place, f"it takes {placement}; it lacks {names}", mend)
    return placement
