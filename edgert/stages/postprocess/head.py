"""How a model's outputs become detections: its own metadata, then the options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edgert.errors import UserError
from edgert.models.describe import DetectionHead

FAMILIES = ("ssd", "yolox", "yolo", "yolo-nms-free", "centerface", "blazeface", "yunet")


class Head(msgspec.Struct, frozen=True):
    """All that the worker needs to read a model's outputs; it stands in its port's attributes.

    Attributes:
        family: One of ``FAMILIES``.
        tensors: Role -> name of the output.
        width: Width of the model's input in pixels.
        height: Height of the model's input in pixels.
        classes: How many labels there are.
        strides: Strides of the heads, for yolox and blazeface.
        class_offset: What a class number of the model has over the index into the labels.
        normalised: Whether boxes are 0-1 of the input instead of pixels of it.
        layout: For yolo: ``rows`` (one row a box) or ``columns`` (one column a box).
        has_objectness: For yolo: whether a box has an objectness beside its class scores.
        landmarks: Name of each point that every detection has, in the order of the model.
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
    landmarks: tuple[str, ...] = ()


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
