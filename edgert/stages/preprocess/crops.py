"""``preprocess.crops``: the parts of a picture that were found become inputs of a second model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from edgert.errors import UserError
from edgert.models.describe import ImageInput
from edgert.options import option
from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, StageOptions
from edgert.stages.geometry import inverse, map_points
from edgert.stages.item_session import ITEMS
from edgert.stages.preprocess.image import (
    SIZES,
    ImagePreprocess,
    ImagePreprocessOptions,
    input_port,
)
from edgert.tensor import IDENTITY, PortSpec, TensorSpec
from edgert.transport.address import Array, address_of
from edgert.transport.slot import Sample
from edgert.wording import counted

LEFT_OUT = "left_out"
# Room for {"left_out": a whole number} in msgpack.
METADATA_BYTES = 32
CORNERS = "corners"


class CropsOptions(ImagePreprocessOptions):
    """Options of ``preprocess.crops``; what is left out comes from the model's own metadata."""

    max_crops: int = option(
        default=16,
        ge=1,
        le=128,
        description="At most so many crops a frame, the first ones; what is left out is counted "
        "and told.",
    )
    margin: float = option(
        default=0.0,
        ge=0,
        le=2,
        description="Share of its size that a crop is larger by on every side.",
    )
    turn_tall: bool = option(
        default=False,
        description="Whether a crop that is at least 1.5 times as high as wide is turned to the "
        "left, as readers of lines of text want it.",
    )


class CropsPreprocess(ImagePreprocess):
    """Cut detections out of the picture, laid flat and scaled, as one tensor with a row for each.

    ``detections`` are those that were cut out, in the order of the rows.
    """

    inputs: ClassVar[Mapping[str, str]] = {"image": "image", "detections": "detections"}
    outputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors", "detections?": "detections"}
    options: ClassVar[type[StageOptions]] = CropsOptions
    settings: CropsOptions

    @classmethod
    def plan(cls, options: Any, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        """Say how many crops there may be, of the size that the model takes."""
        if options.interpolation != "linear":
            fault = f"'{options.interpolation}' is not for crops"
            raise UserError(f"{context.place}, interpolation", fault, "Leave it out")
        found = inputs["detections"]
        item = input_port(options, inputs["image"], context)
        if SIZES in item.attributes:
            fault = "the model takes pictures of several sizes, and crops are all of one"
            mend = "Give one size for each dimension in 'shape' of the stage that runs the model"
            raise UserError(f"{context.place}, for", fault, mend)
        most = min(options.max_crops, found.tensors["boxes"].shape[0] or 0)
        tensors = {name: _many(spec, most) for name, spec in item.tensors.items()}
        attributes = {**item.attributes, ITEMS: most}
        kept = {name: _many(spec, most) for name, spec in found.tensors.items()}
        return {
            "tensor": PortSpec("tensors", tensors, attributes=attributes),
            "detections": PortSpec("detections", kept, METADATA_BYTES, found.attributes),
        }

    def open(self) -> None:
        """Import OpenCV and make the writer."""
        import cv2

        from edgert.stages.preprocess import quad
        from edgert.stages.preprocess.convert import InputWriter, size_of

        cv2.setNumThreads(self.context.threads)
        port = self.context.outputs["tensor"]
        image = msgspec.convert(port.attributes["image"], ImageInput)
        spec = port.tensors[image.tensor]
        self._most = spec.shape[0] or 0
        self._item = tuple(size or 0 for size in spec.shape[1:])
        self._tensor = image.tensor
        self._sampler = quad.QuadSampler()
        self._writer = InputWriter(image, spec, self._sampler, scale_up=self.settings.scale_up)
        self._quad, self._size_of = quad, size_of
        self._left_out = self._too_full = 0

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Cut out what was found in one frame, as far as there is room."""
        image, found, loan = inputs["image"], inputs["detections"], outputs["tensor"]
        corners = self._corners(found, image)[: self._most]
        count = len(corners)
        size = self._size_of(image.tensors, image.header)
        rows = loan.tensor(self._tensor, (count, *self._item))
        for row, quad in zip(rows, corners, strict=True):
            turned = self._quad.turn_if_tall(quad) if self.settings.turn_tall else quad
            self._sampler.aim(turned, size)
            flat, address = self._quad.flat_size(turned), address_of(row)
            self._writer.write_into(row, image.tensors, image.header, flat, address)
        loan.set_header(found.header)
        left_out = self._count_left_out(len(found.tensors["boxes"]) - count)
        if "detections" in outputs:
            kept = outputs["detections"]
            for name, array in found.tensors.items():
                kept.tensor(name, (count, *array.shape[1:]))[...] = array[:count]
            kept.set_header(found.header)
            kept.set_metadata({LEFT_OUT: left_out})

    def close(self) -> None:
        """Say how many detections there was no room for."""
        if self._left_out:
            self.context.log.warning(
                "%s: left out: %s of %s; there is room for %d (max_crops)",
                self.context.place,
                counted(self._left_out, "detection"),
                counted(self._too_full, "frame"),
                self._most,
            )

    def _count_left_out(self, left_out: int) -> int:
        self._left_out += left_out
        self._too_full += left_out > 0
        return left_out

    def _corners(self, found: Sample, image: Sample) -> Array:
        """Return the corners of each detection in pixels of the picture that is in the slot."""
        tensors, transform = found.tensors, image.header.transform
        boxes = tensors["boxes"]
        corners = tensors[CORNERS] if CORNERS in tensors else self._quad.corners_of(boxes)
        if self.settings.margin:
            corners = self._quad.grow(corners, self.settings.margin)
        return corners if transform == IDENTITY else map_points(corners, inverse(transform))


def _many(spec: TensorSpec, most: int) -> TensorSpec:
    return msgspec.structs.replace(spec, shape=(most, *spec.shape[1:]))
