"""``postprocess.text-lines``: a model's output becomes lines of text that are still to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from edgert.errors import ModelError, UserError
from edgert.models.describe import LinesHead
from edgert.options import Pixels, option
from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, Stage, StageOptions
from edgert.stages.geometry import Affine, compose, map_points
from edgert.stages.postprocess.described import choose_tensors
from edgert.stages.postprocess.sizes import BySize, in_each_size, sizes_of
from edgert.tensor import IDENTITY, PortSpec, TensorSpec
from edgert.transport.address import Array

LABEL = "text"


class TextLinesOptions(StageOptions):
    """Options of ``postprocess.text-lines``; what is left out comes from the model's metadata."""

    threshold: float = option(default=0.5, gt=0, le=1, description="Lowest score of a line.")
    pixel_threshold: float = option(
        default=0.3,
        gt=0,
        lt=1,
        description="From which probability on a pixel is inside of a line.",
    )
    unclip: float = option(
        default=1.6,
        ge=0,
        le=10,
        description="How much lines grow: the model finds them shrunk. Area over perimeter, times "
        "this.",
    )
    max_lines: int = option(
        default=100, ge=1, le=1000, description="At most so many lines a frame, the best ones."
    )
    model: str | None = option(
        default=None, description="Model whose metadata is used; else the one whose outputs arrive."
    )
    family: Literal["db"] | None = option(
        default=None, description="How the outputs are to be read."
    )
    tensors: dict[str, str] | None = option(
        default=None, description="Role -> name of the output: `probability`."
    )
    size: tuple[Pixels, Pixels] | None = option(
        default=None, description="`[width, height]` of the model's input, where it is not known."
    )


class TextLinesPostprocess(Stage):
    """Find lines of text as detections with corners, in the order in which they are read."""

    inputs: ClassVar[Mapping[str, str]] = {"raw": "tensors"}
    outputs: ClassVar[Mapping[str, str]] = {"detections": "detections"}
    options: ClassVar[type[StageOptions]] = TextLinesOptions
    is_stateless = True
    settings: TextLinesOptions

    @classmethod
    def plan(
        cls, options: TextLinesOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Say how many lines there may be, and put into attributes where they are found."""
        port, where = inputs["raw"], f"{context.place}, input 'raw'"
        each = in_each_size(options.model, port, context)
        described = each[0].model
        known = described.lines if described else None
        if known is None and options.family is None:
            fault = "nothing is known of how the model's outputs become lines of text"
            raise UserError(where, fault, "Give `family:`")
        tensors = choose_tensors(
            known.tensors if known else {}, options.tensors, ("probability",), port, where
        )
        head = LinesHead(options.family or (known.family if known else ""), tensors)
        name = tensors["probability"]
        attributes = {
            "labels": [LABEL],
            "head": msgspec.to_builtins(head),
            "sizes": sizes_of(each, options.size, where),
            "shapes": [_map_shape(name, one.port.tensors[name], where) for one in each],
        }
        return {"detections": lines_port(options.max_lines, attributes)}

    def open(self) -> None:
        """Import OpenCV."""
        import cv2

        from edgert.stages.postprocess.db import find_lines

        cv2.setNumThreads(self.context.threads)
        attributes = self.context.outputs["detections"].attributes
        self._tensor = attributes["head"]["tensors"]["probability"]
        sizes, shapes = attributes["sizes"], attributes["shapes"]
        self._maps = BySize(sizes, list(map(_map_of, sizes, shapes)))
        self._find = find_lines

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write the lines of one frame."""
        sample, loan, settings = inputs["raw"], outputs["detections"], self.settings
        header = sample.header
        shape, to_input = self._maps.of(header)
        probability = sample.tensors[self._tensor].reshape(shape)
        found = self._find(
            probability, settings.pixel_threshold, settings.threshold, settings.unclip
        )
        corners = map_points(found.corners, compose(header.transform, to_input))
        corners = corners.clip(0, (header.width, header.height)).astype(np.float32)
        inside = (np.ptp(corners, axis=1) >= 1).all(1).nonzero()[0]
        best = inside[np.argsort(-found.scores[inside], kind="stable")][: settings.max_lines]
        kept = best[reading_order(corners[best])]
        corners, count = corners[kept], len(kept)
        loan.tensor("corners", (count, 4, 2))[...] = corners
        boxes = loan.tensor("boxes", (count, 4))
        boxes[:, :2], boxes[:, 2:] = corners.min(1), corners.max(1)
        loan.tensor("scores", (count,))[...] = found.scores[kept]
        loan.tensor("classes", (count,))[...] = 0
        loan.set_transform(IDENTITY)


def lines_port(most: int, attributes: Mapping[str, Any]) -> PortSpec:
    """Return a port of up to ``most`` lines of text a frame."""
    tensors = {
        "boxes": TensorSpec("f32", (most, 4)),
        "scores": TensorSpec("f32", (most,)),
        "classes": TensorSpec("i32", (most,)),
        "corners": TensorSpec("f32", (most, 4, 2)),
    }
    return PortSpec("detections", tensors, attributes=dict(attributes))


def reading_order(corners: Array) -> list[int]:
    """Return lines [N, 4, 2] from above, and side by side from the left.

    A line stands in the row of another when its middle is within half of the other's height.
    """
    middle, height = corners[..., 1].mean(1), np.ptp(corners[..., 1], axis=1)
    rows: list[list[int]] = []
    for line in np.argsort(middle, kind="stable").tolist():
        first = rows[-1][0] if rows else -1
        if rows and middle[line] - middle[first] <= height[first] / 2:
            rows[-1].append(line)
        else:
            rows.append([line])
    left = corners[..., 0].min(1) if len(corners) else middle
    return [line for row in rows for line in sorted(row, key=left.__getitem__)]


def _map_of(size: Sequence[int], shape: Sequence[int]) -> tuple[tuple[int, ...], Affine]:
    """Return height and width of the map, and the way from its pixels to those of the input."""
    return tuple(shape), (size[0] / shape[1], 0.0, 0.0, 0.0, size[1] / shape[0], 0.0)


def _map_shape(name: str, spec: TensorSpec, where: str) -> tuple[int, int]:
    """Return height and width of the map.

    Raises:
        ModelError: The output is no map.
    """
    shape = tuple(size or 0 for size in spec.shape)
    if spec.dtype != "f32" or len(shape) < 2 or any(size != 1 for size in shape[:-2]):
        fault = f"output {name!r} is {spec}, and a map f32[1,1,H,W] is needed"
        raise ModelError(where, fault, "Give the right `tensors:`")
    return shape[-2], shape[-1]
