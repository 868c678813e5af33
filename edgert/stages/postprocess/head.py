"""How a model's outputs become detections: its own metadata, then the options, checked by shape."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import msgspec

from edgert.errors import Fault, ModelError, PipelineError, UserError
from edgert.models.describe import DetectionHead
from edgert.tensor import PortSpec, TensorSpec

FAMILIES = ("ssd", "yolox", "yolo", "yolo-nms-free")
ROLES = {
    "ssd": ("boxes", "classes", "scores"),
    "yolox": ("predictions",),
    "yolo": ("predictions",),
    "yolo-nms-free": ("predictions",),
}
OPTIONAL_ROLES = {"ssd": ("count",)}


class Head(msgspec.Struct, frozen=True):
    """All that the worker needs to read a model's outputs; it stands in its port's attributes.

    Attributes:
        family: One of ``FAMILIES``.
        tensors: Role -> name of the output.
        width: Width of the model's input in pixels.
        height: Height of the model's input in pixels.
        classes: How many labels there are.
        strides: Strides of the heads, for yolox.
        class_offset: What a class number of the model has over the index into the labels.
        normalised: Whether boxes are 0-1 of the input instead of pixels of it.
        layout: For yolo: ``rows`` (one row a box) or ``columns`` (one column a box).
        has_objectness: For yolo: whether a box has an objectness beside its class scores.
    """

    family: str
    tensors: dict[str, str]
    width: int
    height: int
    classes: int
    strides: tuple[int, ...] = ()
    class_offset: int = 0
    normalised: bool = False
    layout: str = "rows"
    has_objectness: bool = False


def merge(known: DetectionHead | None, given: Mapping[str, Any], where: str) -> DetectionHead:
    """Return the head by the model's own metadata, where ``given`` goes first.

    Raises:
        UserError: Family or labels are neither known nor given.
    """
    fields: dict[str, Any] = msgspec.structs.asdict(known) if known else {}
    if "family" in given and given["family"] != fields.get("family"):
        fields = {key: fields[key] for key in ("labels",) if key in fields}
    fields |= given
    if fields.get("family") == "ssd" and "normalised" not in given:
        fields["normalised"] = True  # that is what the family means
    missing = [key for key in ("family", "labels") if not fields.get(key)]
    if missing:
        fault = "nothing is known of how the model's outputs become detections"
        raise UserError(where, fault, f"Give {', '.join(f'`{key}:`' for key in missing)}")
    if fields["family"] not in FAMILIES:
        fault = f"the model's family {fields['family']!r} is not known"
        raise UserError(where, fault, f"Known: {', '.join(FAMILIES)}")
    return DetectionHead(**{"tensors": {}, **fields})


def fit(wanted: DetectionHead, size: tuple[int, int], port: PortSpec, where: str) -> Head:
    """Check a head against the tensors that arrive.

    Raises:
        UserError: A tensor is missing or has another shape than its family; all faults at once.
    """
    tensors = _roles(wanted, port, where)
    head = Head(
        wanted.family,
        tensors,
        *size,
        len(wanted.labels),
        tuple(wanted.strides),
        wanted.class_offset,
        wanted.normalised,
    )
    specs = {role: port.tensors[name] for role, name in tensors.items()}
    faults = [
        f"output {tensors[role]!r} is {spec}, and floating-point numbers of one picture are needed"
        for role, spec in specs.items()
        if _is_unusable(role, spec)
    ]
    if faults:
        mend = "Choose the model's float outputs by `tensors:`, or fix its batch to 1"
        raise PipelineError([Fault(where, fault, mend) for fault in faults])
    checks = {"ssd": _fit_ssd, "yolox": _fit_yolox, "yolo": _fit_yolo}
    return checks.get(wanted.family, _fit_nms_free)(head, specs, where)


def _roles(wanted: DetectionHead, port: PortSpec, where: str) -> dict[str, str]:
    needed = ROLES[wanted.family]
    allowed = (*needed, *OPTIONAL_ROLES.get(wanted.family, ()))
    there = ", ".join(f"{name} ({spec})" for name, spec in port.tensors.items())
    tensors = dict(wanted.tensors)
    if not tensors and needed == ("predictions",) and len(port.tensors) == 1:
        tensors = {"predictions": next(iter(port.tensors))}
    strange = [role for role in tensors if role not in allowed]
    missing = [role for role in needed if role not in tensors]
    absent = [name for name in tensors.values() if name not in port.tensors]
    if strange or missing:
        fault = f"family {wanted.family} has no role {strange[0]!r}" if strange else ""
        fault = fault or f"it is not known which output is {', '.join(missing)}"
        mend = f"Give `tensors: {{ROLE: OUTPUT}}` for {', '.join(allowed)}; outputs: {there}"
        raise UserError(where, fault, mend)
    if absent:
        raise UserError(where, f"what arrives has no tensor {absent[0]!r}", f"It has: {there}")
    return tensors


def _is_unusable(role: str, spec: TensorSpec) -> bool:
    is_number = spec.dtype in {"f16", "f32", "f64"}
    if role in {"classes", "count"}:
        is_number = is_number or spec.dtype in {"i32", "i64", "u8"}
    is_batch = len(spec.shape) > 2 and spec.shape[0] != 1
    return not is_number or is_batch or None in spec.shape


def _misfit(where: str, fault: str, mend: str = "") -> ModelError:
    return ModelError(where, fault, mend or "Give the right `family:`, `labels:` or `tensors:`")


def _fit_ssd(head: Head, specs: Mapping[str, TensorSpec], where: str) -> Head:
    sizes = {role: prod(size or 0 for size in spec.shape) for role, spec in specs.items()}
    if specs["boxes"].shape[-1] != 4 or not (
        sizes["boxes"] == 4 * sizes["scores"] == 4 * sizes["classes"]
    ):
        said = ", ".join(f"{role} {spec}" for role, spec in specs.items())
        raise _misfit(where, f"the outputs do not belong together as family ssd: {said}")
    return head


def _rows_of(head: Head, specs: Mapping[str, TensorSpec], where: str) -> tuple[int, int]:
    spec = specs["predictions"]
    if len(spec.shape) not in {2, 3}:
        fault = f"output {head.tensors['predictions']!r} is {spec}, which family {head.family}"
        raise _misfit(where, f"{fault} does not give")
    first, second = spec.shape[-2:]
    return first or 0, second or 0


def _fit_yolox(head: Head, specs: Mapping[str, TensorSpec], where: str) -> Head:
    rows, numbers = _rows_of(head, specs, where)
    if not head.strides:
        head = msgspec.structs.replace(head, strides=(8, 16, 32))
    wanted = sum((head.width // s) * (head.height // s) for s in head.strides)
    classes = head.classes + head.class_offset
    if (rows, numbers) != (wanted, 5 + classes):
        fault = (
            f"output {head.tensors['predictions']!r} is {specs['predictions']}; yolox with an "
            f"input of {head.width}x{head.height}, strides {list(head.strides)} and {classes} "
            f"classes gives [1,{wanted},{5 + classes}]"
        )
        raise _misfit(where, fault, "Give the right `strides:`, `labels:` or `family:`")
    return head


def _fit_yolo(head: Head, specs: Mapping[str, TensorSpec], where: str) -> Head:
    first, second = _rows_of(head, specs, where)
    classes = head.classes + head.class_offset
    readings = {
        ("rows", True): second == 5 + classes,
        ("columns", False): first == 4 + classes,
        ("rows", False): second == 4 + classes,
        ("columns", True): first == 5 + classes,
    }
    fitting = [reading for reading, fits in readings.items() if fits]
    if len(fitting) != 1:
        how = "in more than one way" if fitting else "in no way"
        fault = (
            f"output {head.tensors['predictions']!r} is {specs['predictions']}, which {classes} "
            f"labels fit {how} (4 + labels, or 5 + labels with objectness)"
        )
        raise _misfit(where, fault)
    layout, has_objectness = fitting[0]
    return msgspec.structs.replace(head, layout=layout, has_objectness=has_objectness)


def _fit_nms_free(head: Head, specs: Mapping[str, TensorSpec], where: str) -> Head:
    _, numbers = _rows_of(head, specs, where)
    if numbers != 6:
        fault = f"output {head.tensors['predictions']!r} is {specs['predictions']}"
        raise _misfit(where, f"{fault}; yolo-nms-free gives six numbers a box")
    return head
