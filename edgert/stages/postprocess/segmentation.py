"""``postprocess.segmentation``: a model's output becomes a mask of classes over the frame."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import ceil, floor
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from edgert.errors import FrameLostError, ModelError, UserError
from edgert.models.describe import SegmentationHead
from edgert.options import Pixels, option
from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, Stage, StageOptions
from edgert.stages.geometry import Affine, compose, inverse, map_point
from edgert.stages.postprocess.described import choose_tensors, read_names
from edgert.stages.postprocess.sizes import BySize, in_each_size, sizes_of
from edgert.tensor import PortSpec, TensorSpec
from edgert.transport.address import Array

MOST_CLASSES = 256
_FLOATS = ("f16", "f32", "f64")
_INTEGERS = ("u8", "i8", "i32", "i64")
Window = tuple[int, int, int, int]


class SegmentationOptions(StageOptions):
    """Options of ``postprocess.segmentation``; the rest comes from the model's metadata."""

    threshold: float = option(
        default=0.5,
        gt=0,
        lt=1,
        description="Family probability: from where on a pixel is of the class.",
    )
    model: str | None = option(
        default=None, description="Model whose metadata is used; else the one whose outputs arrive."
    )
    family: Literal["classes", "scores", "probability"] | None = option(
        default=None,
        description="What the output has for each pixel: the number of its class, a score for each "
        "class, or the probability of the one class.",
    )
    tensors: dict[str, str] | None = option(
        default=None, description="Role -> name of the output: `mask`."
    )
    labels: tuple[str, ...] | str | None = option(
        default=None,
        description="Name of each class, that of the background first, or a text file with one on "
        "each line.",
    )
    size: tuple[Pixels, Pixels] | None = option(
        default=None, description="`[width, height]` of the model's input, where it is not known."
    )


class Layout(msgspec.Struct, frozen=True):
    """How the output lies in memory; it stands in the port's attributes.

    Attributes:
        tensor: Name of the output.
        family: As in the model's metadata.
        shape: The output without its batch of one: [H, W], [H, W, C] or [C, H, W].
        axis: Where the classes are; -1 where there is no such axis.
        classes: How many labels there are.
        scale: Pixels of the model's input for one of the mask, x and y.
    """

    tensor: str
    family: str
    shape: tuple[int, ...]
    axis: int
    classes: int
    scale: tuple[float, float]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the mask."""
        height, width = (size for n, size in enumerate(self.shape) if n != self.axis)
        return height, width


class SegmentationPostprocess(Stage):
    """Find the class of each pixel, in the model's resolution, without the letterbox's border.

    The transform of what leaves leads from pixels of the mask to pixels of the source frame.
    """

    inputs: ClassVar[Mapping[str, str]] = {"raw": "tensors"}
    outputs: ClassVar[Mapping[str, str]] = {"segmentation": "segmentation"}
    options: ClassVar[type[StageOptions]] = SegmentationOptions
    is_stateless = True
    live_options = frozenset({"threshold"})
    settings: SegmentationOptions

    @classmethod
    def plan(
        cls, options: SegmentationOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Say how large the mask is, and put into attributes how it is found."""
        port, where = inputs["raw"], f"{context.place}, input 'raw'"
        each = in_each_size(options.model, port, context)
        described = each[0].model
        head = _head(described.segmentation if described else None, options, port, context)
        name, sizes = head.tensors["mask"], sizes_of(each, options.size, where)
        layouts = [
            lay_out(head, one.port.tensors[name], size, where)
            for size, one in zip(sizes, each, strict=True)
        ]
        attributes = {
            "labels": list(head.labels),
            "sizes": sizes,
            "layouts": msgspec.to_builtins(layouts),
        }
        tensors = {"mask": TensorSpec("u8", layouts[0].size)}
        return {"segmentation": PortSpec("segmentation", tensors, attributes=attributes)}

    def open(self) -> None:
        """Get ready to read the output."""
        attributes = self.context.outputs["segmentation"].attributes
        layouts = msgspec.convert(attributes["layouts"], list[Layout])
        self._layouts = BySize(attributes["sizes"], layouts)
        self._has_warned = False

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write the mask of one frame."""
        sample, loan = inputs["raw"], outputs["segmentation"]
        header = sample.header
        layout = self._layouts.of(header)
        to_source = compose(header.transform, (layout.scale[0], 0, 0, 0, layout.scale[1], 0))
        left, top, right, bottom = window_of(to_source, (header.width, header.height), layout.size)
        window = (slice(top, bottom), slice(left, right))
        mask = loan.tensor("mask", (bottom - top, right - left))
        self._write(sample.tensors[layout.tensor].reshape(layout.shape), layout, window, mask)
        loan.set_transform(compose(to_source, (1, 0, left, 0, 1, top)))

    def _write(
        self, found: Array, layout: Layout, window: tuple[slice, slice], mask: Array
    ) -> None:
        if layout.family == "probability":
            np.greater_equal(found[window], self.settings.threshold, out=mask, casting="unsafe")
            return
        if layout.family == "scores":
            part = found[window] if layout.axis == 2 else found[(slice(None), *window)]
            mask[...] = part.argmax(layout.axis)
            return
        part = found[window]
        mask[...] = part
        strange = (part < 0) | (part >= layout.classes)
        if strange.any():
            mask[strange] = 0
            self._warn(part[strange], layout.classes)

    def _warn(self, unknown: Array, classes: int) -> None:
        if not self._has_warned:
            self._has_warned = True
            self.context.log.warning(
                "%s: the model gives class %d and there are %d labels: such pixels are told as "
                "background",
                self.context.place,
                unknown[0],
                classes,
            )


@lru_cache(maxsize=64)
def window_of(to_source: Affine, source: tuple[int, int], mask: tuple[int, int]) -> Window:
    """Return left, top, right, bottom of the part of a mask that shows the frame.

    Args:
        to_source: From pixels of the mask to pixels of the source frame.
        source: Width and height of the source frame.
        mask: Height and width of the mask.

    Raises:
        FrameLostError: The picture was turned on its way, or the mask does not show the frame.
    """
    if to_source[1] or to_source[3]:
        raise FrameLostError("the picture was turned on its way to the model: no mask is told")
    back = inverse(to_source)
    corners = map_point(back, 0, 0), map_point(back, *source)
    (left, right), (top, bottom) = (sorted(pair) for pair in zip(*corners, strict=True))
    # What is a whole number but for rounding is meant to be one.
    window = (
        max(0, floor(left + 1e-4)),
        max(0, floor(top + 1e-4)),
        min(mask[1], ceil(right - 1e-4)),
        min(mask[0], ceil(bottom - 1e-4)),
    )
    if window[0] >= window[2] or window[1] >= window[3]:
        raise FrameLostError("the model's input shows nothing of the frame")
    return window


def lay_out(head: SegmentationHead, spec: TensorSpec, size: tuple[int, int], where: str) -> Layout:
    """Return how an output holds a mask.

    Args:
        head: What it is said to hold.
        spec: What it is.
        size: Width and height of the model's input.
        where: The place of errors.

    Raises:
        ModelError: It cannot hold it.
    """
    name, classes = head.tensors["mask"], len(head.labels)
    shape = tuple(one or 0 for one in spec.shape)
    if len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    axis = -1
    if head.family == "scores":
        axis = next((n for n in (2, 0) if len(shape) == 3 and shape[n] == classes), -1)
        fits = axis >= 0
        wanted = f"[1,H,W,{classes}] or [1,{classes},H,W]"
    else:
        shape = tuple(one for one in shape if one != 1) if len(shape) == 3 else shape
        fits = len(shape) == 2
        wanted = "[1,H,W]"
    dtypes = _INTEGERS if head.family == "classes" else _FLOATS
    if not fits or spec.dtype not in dtypes:
        fault = f"output {name!r} is {spec}; family {head.family} with {classes} labels gives"
        mend = "Give the right `family:`, `labels:` or `tensors:`"
        raise ModelError(where, f"{fault} {wanted} of {' or '.join(dtypes)}", mend)
    height, width = (one for n, one in enumerate(shape) if n != axis)
    return Layout(name, head.family, shape, axis, classes, (size[0] / width, size[1] / height))


def _head(
    known: SegmentationHead | None,
    options: SegmentationOptions,
    port: PortSpec,
    context: PlanContext,
) -> SegmentationHead:
    where = f"{context.place}, input 'raw'"
    fields: dict[str, Any] = msgspec.structs.asdict(known) if known else {}
    if options.family is not None:
        fields["family"] = options.family
    if options.labels is not None:
        fields["labels"] = read_names(options.labels, "labels", context)
    missing = [key for key in ("family", "labels") if not fields.get(key)]
    if missing:
        fault = "nothing is known of how the model's outputs become a mask"
        raise UserError(where, fault, f"Give {', '.join(f'`{key}:`' for key in missing)}")
    count = len(fields["labels"])
    wanted = 2 if fields["family"] == "probability" else None
    if count > MOST_CLASSES or (wanted and count != wanted):
        at_most = f"exactly {wanted}" if wanted else f"at most {MOST_CLASSES}"
        fault = f"there are {count} labels, and family {fields['family']} takes {at_most}"
        raise UserError(f"{context.place}, labels", fault, "The background's is the first")
    fields["tensors"] = choose_tensors(
        fields.get("tensors") or {}, options.tensors, ("mask",), port, where
    )
    return SegmentationHead(**fields)
