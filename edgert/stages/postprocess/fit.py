"""Whether the tensors that arrive are those of a family, as far as their shapes can tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import msgspec

from edgert.errors import Fault, ModelError, PipelineError, UserError
from edgert.models.describe import DetectionHead
from edgert.stages.postprocess.head import Head
from edgert.stages.postprocess.quantised import QUANTISED
from edgert.tensor import PortSpec, TensorSpec

Specs = Mapping[str, TensorSpec]

YUNET_STRIDES = (8, 16, 32)
YUNET_PARTS = {"cls": 1, "obj": 1, "bbox": 4, "kps": 10}  # numbers a cell
ROLES = {
    "ssd": ("boxes", "classes", "scores"),
    "yolox": ("predictions",),
    "yolo": ("predictions",),
    "yolo-nms-free": ("predictions",),
    "centerface": ("heatmap", "scale", "offset", "landmarks"),
    "blazeface": ("boxes", "scores"),
    "yunet": tuple(f"{part}_{stride}" for part in YUNET_PARTS for stride in YUNET_STRIDES),
}
OPTIONAL_ROLES = {"ssd": ("count",)}
# Left and right as the person has them.
_FIVE = ("right_eye", "left_eye", "nose", "right_mouth_corner", "left_mouth_corner")
LANDMARKS = {
    "centerface": _FIVE,
    "yunet": _FIVE,
    "blazeface": ("right_eye", "left_eye", "nose", "mouth", "right_ear", "left_ear"),
}
# Outputs that hold scores, of whatever family.
SCORES = ("predictions", "scores", "heatmap", *ROLES["yunet"][:6])
CENTERFACE_STRIDE = 4
BLAZEFACE_STRIDES = (8, 16, 16, 16)


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
        landmarks=LANDMARKS.get(wanted.family, ()),
    )
    specs = {role: port.tensors[name] for role, name in tensors.items()}
    faults = [
        f"output {tensors[role]!r} is {spec}, and floating-point numbers of one picture are needed"
        for role, spec in specs.items()
        if _is_unusable(role, spec)
    ]
    if faults:
        mend = (
            "Choose the model's float outputs by `tensors:`, or fix its batch to 1; the scale of a "
            "quantised TFLite model is told by pip install 'edgert[tflite]'"
        )
        raise PipelineError([Fault(where, fault, mend) for fault in faults])
    return _FITS[wanted.family](head, specs, where)


def _roles(wanted: DetectionHead, port: PortSpec, where: str) -> dict[str, str]:
    needed = ROLES[wanted.family]
    allowed = (*needed, *OPTIONAL_ROLES.get(wanted.family, ()))
    there = ", ".join(f"{name} ({spec})" for name, spec in port.tensors.items())
    tensors = dict(wanted.tensors)
    if not tensors and needed == ("predictions",) and len(port.tensors) == 1:
        tensors = {"predictions": next(iter(port.tensors))}
    if not tensors and port.tensors.keys() >= set(needed):
        tensors = {role: role for role in needed}
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
    is_number = is_number or (spec.dtype in QUANTISED and spec.quantisation is not None)
    if role in {"classes", "count"}:
        is_number = is_number or spec.dtype in {"i32", "i64", "u8"}
    is_batch = len(spec.shape) > 2 and spec.shape[0] != 1
    return not is_number or is_batch or None in spec.shape


def _misfit(where: str, fault: str, mend: str = "") -> ModelError:
    return ModelError(where, fault, mend or "Give the right `family:`, `labels:` or `tensors:`")


def _fit_ssd(head: Head, specs: Specs, where: str) -> Head:
    sizes = {role: prod(size or 0 for size in spec.shape) for role, spec in specs.items()}
    if specs["boxes"].shape[-1] != 4 or not (
        sizes["boxes"] == 4 * sizes["scores"] == 4 * sizes["classes"]
    ):
        said = ", ".join(f"{role} {spec}" for role, spec in specs.items())
        raise _misfit(where, f"the outputs do not belong together as family ssd: {said}")
    return head


def _rows_of(head: Head, specs: Specs, where: str) -> tuple[int, int]:
    spec = specs["predictions"]
    if len(spec.shape) not in {2, 3}:
        fault = f"output {head.tensors['predictions']!r} is {spec}, which family {head.family}"
        raise _misfit(where, f"{fault} does not give")
    first, second = spec.shape[-2:]
    return first or 0, second or 0


def _fit_yolox(head: Head, specs: Specs, where: str) -> Head:
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


def _fit_yolo(head: Head, specs: Specs, where: str) -> Head:
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


def _fit_nms_free(head: Head, specs: Specs, where: str) -> Head:
    _, numbers = _rows_of(head, specs, where)
    if numbers != 6:
        fault = f"output {head.tensors['predictions']!r} is {specs['predictions']}"
        raise _misfit(where, f"{fault}; yolo-nms-free gives six numbers a box")
    return head


def _fit_centerface(head: Head, specs: Specs, where: str) -> Head:
    rows, columns = head.height // CENTERFACE_STRIDE, head.width // CENTERFACE_STRIDE
    channels = {"heatmap": 1, "scale": 2, "offset": 2, "landmarks": 2 * len(head.landmarks)}
    wanted = {role: (1, count, rows, columns) for role, count in channels.items()}
    return _exactly(head, specs, wanted, where)


def _fit_blazeface(head: Head, specs: Specs, where: str) -> Head:
    if not head.strides:
        head = msgspec.structs.replace(head, strides=BLAZEFACE_STRIDES)
    cells = sum((head.width // s) * (head.height // s) for s in head.strides)
    anchors = specs["boxes"].shape[1] if len(specs["boxes"].shape) == 3 else None
    a_cell = 1 if anchors == cells else 2
    wanted = {
        "boxes": (1, a_cell * cells, 4 + 2 * len(head.landmarks)),
        "scores": (1, a_cell * cells, 1),
    }
    return _exactly(head, specs, wanted, where)


def _fit_yunet(head: Head, specs: Specs, where: str) -> Head:
    head = msgspec.structs.replace(head, strides=YUNET_STRIDES)
    wanted = {
        f"{part}_{stride}": (1, (head.width // stride) * (head.height // stride), numbers)
        for part, numbers in YUNET_PARTS.items()
        for stride in YUNET_STRIDES
    }
    return _exactly(head, specs, wanted, where)


def _exactly(head: Head, specs: Specs, wanted: Mapping[str, tuple[int, ...]], where: str) -> Head:
    faults = [
        f"output {head.tensors[role]!r} is {specs[role]}; {head.family} with an input of "
        f"{head.width}x{head.height} gives {list(shape)} as {role}"
        for role, shape in wanted.items()
        if specs[role].shape != shape
    ]
    if faults:
        mend = "Give the right `family:`, `tensors:` or, for blazeface, `strides:`"
        raise PipelineError([Fault(where, fault, mend) for fault in faults])
    return head


_FITS: Mapping[str, Callable[[Head, Specs, str], Head]] = {
    "ssd": _fit_ssd,
    "yolox": _fit_yolox,
    "yolo": _fit_yolo,
    "yolo-nms-free": _fit_nms_free,
    "centerface": _fit_centerface,
    "blazeface": _fit_blazeface,
    "yunet": _fit_yunet,
}
