"""``filter.detections``: lets through detections by label, score, size and place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from annotated_types import Interval

from edgert.errors import Fault, PipelineError, UserError
from edgert.options import Number, keys_of, option
from edgert.pipeline.near import choices
from edgert.stages.base import (
    Inputs,
    Outputs,
    PlanContext,
    Ports,
    Stage,
    StageOptions,
)
from edgert.tensor import ROWS, PortSpec
from edgert.transport.address import Array

TENSORS = ("boxes", "scores", "classes")
Fraction = Annotated[float, Interval(ge=0, le=1)]


def _shape_of(region: Any) -> str:
    """Tell the two ways to write a region apart, so that only faults of the one meant are told."""
    is_flat = isinstance(region, list | tuple) and not any(
        isinstance(part, list | tuple) for part in region
    )
    return "rectangle" if is_flat else "polygon"


class _ToldApart:
    """Beside the two shapes of a region: only the one that is meant is looked at."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Have pydantic ask ``_shape_of`` first."""
        from pydantic_core import core_schema

        rectangle, polygon = map(handler.generate_schema, get_args(source))
        shapes = {"rectangle": rectangle, "polygon": polygon}
        return core_schema.tagged_union_schema(shapes, discriminator=_shape_of)


Region = Annotated[
    tuple[Number, Number, Number, Number] | tuple[tuple[Number, Number], ...], _ToldApart()
]
FractionRegion = Annotated[
    tuple[Fraction, Fraction, Fraction, Fraction] | tuple[tuple[Fraction, Fraction], ...],
    _ToldApart(),
]


class DetectionFilterOptions(StageOptions):
    """Options of ``filter.detections``: a detection passes if it meets every one that is given."""

    labels: tuple[str, ...] | None = option(
        default=None, min_length=1, description="Labels that pass; without it, all."
    )
    min_score: float = option(default=0.0, ge=0, le=1, description="Lowest score that passes.")
    min_area_px: float = option(
        default=0.0,
        ge=0,
        description="Smallest area of a box, in square pixels of the source frame.",
    )
    max_area_px: float | None = option(
        default=None,
        gt=0,
        description="Largest area of a box, in square pixels of the source frame.",
    )
    region: FractionRegion | None = option(
        default=None,
        description="Where detections pass, in fractions 0-1 of the frame: a rectangle "
        "`[x1, y1, x2, y2]` or a polygon `[[x, y], [x, y], [x, y], ...]`.",
    )
    region_px: Region | None = option(
        default=None, description="The same in pixels of the source frame (instead of `region`)."
    )
    anchor: Literal["centre", "bottom-centre"] = option(
        default="centre", description="Point of a box that has to lie in the region."
    )

    def check(self, given: frozenset[str]) -> None:
        """Refuse what nothing could pass."""
        if self.region is not None and self.region_px is not None:
            msg = "give `region:` or `region_px:`, not both"
            raise ValueError(msg)
        if self.max_area_px is not None and self.max_area_px < self.min_area_px:
            msg = "`max_area_px` is smaller than `min_area_px`: nothing would pass"
            raise ValueError(msg)
        region = self.region if self.region is not None else self.region_px
        if region is not None:
            _check_region(polygon_of(region))


class DetectionFilter(Stage):
    """Let through the detections that are asked for; a frame without any passes on, empty."""

    inputs: ClassVar[Mapping[str, str]] = {"detections": "detections"}
    outputs: ClassVar[Mapping[str, str]] = {"detections": "detections"}
    options: ClassVar[type[StageOptions]] = DetectionFilterOptions
    is_stateless = True
    live_options = frozenset(keys_of(DetectionFilterOptions))
    settings: DetectionFilterOptions

    @classmethod
    def plan(
        cls, options: DetectionFilterOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Say that the same detections leave, or fewer of them."""
        port = inputs["detections"]
        missing = [name for name in TENSORS if name not in port.tensors]
        if missing:
            fault = f"the detections that arrive have no {', '.join(missing)}"
            mend = "Read a stage such as postprocess.detection"
            raise UserError(f"{context.place}, input 'detections'", fault, mend)
        faults = _unknown_labels(options.labels or (), port.attributes.get("labels", []), context)
        if faults:
            raise PipelineError(faults)
        tensors = {name: port.tensors[name] for name in _tensors_of(port)}
        return {"detections": PortSpec(port.kind, tensors, 0, port.attributes)}

    def open(self) -> None:
        """Turn names of labels into numbers of classes, and the region into its corners."""
        labels = self.context.inputs["detections"].attributes.get("labels", [])
        wanted = self.settings.labels
        passing = [n for n, label in enumerate(labels) if wanted and label in wanted]
        self._classes = np.array(passing, np.int32) if wanted else None
        options = self.settings
        region = options.region if options.region is not None else options.region_px
        self._polygon = None if region is None else polygon_of(region)
        self._max_area = np.inf if options.max_area_px is None else options.max_area_px
        self._tensors = _tensors_of(self.context.inputs["detections"])
        self._has_area = options.min_area_px > 0 or options.max_area_px is not None

    def change(self, options: DetectionFilterOptions) -> None:
        """Let other detections through from the next frame on."""
        super().change(options)
        self.open()

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write the detections that pass."""
        sample, loan = inputs["detections"], outputs["detections"]
        header = sample.header
        boxes, scores, classes = (sample.tensors[name] for name in TENSORS)
        passes = scores >= self.settings.min_score
        if self._classes is not None:
            passes &= np.isin(classes, self._classes)
        if self._has_area:
            area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
            passes &= (area >= self.settings.min_area_px) & (area <= self._max_area)
        if self._polygon is not None:
            passes &= self._in_region(boxes, self._polygon, (header.width, header.height))
        kept = passes.nonzero()[0]
        for name in self._tensors:
            array = sample.tensors[name]
            target = loan.tensor(name, (len(kept), *array.shape[1:]))
            np.take(array, kept, axis=0, out=target, mode="clip")  # "raise" would use a buffer

    def _in_region(self, boxes: Array, polygon: Array, size: tuple[int, int]) -> Array:
        if self.settings.region is not None:
            polygon = polygon * size
        x = (boxes[:, 0] + boxes[:, 2]) * 0.5
        is_bottom = self.settings.anchor == "bottom-centre"
        y = boxes[:, 3] if is_bottom else (boxes[:, 1] + boxes[:, 3]) * 0.5
        return inside(x, y, polygon)


def _tensors_of(port: PortSpec) -> tuple[str, ...]:
    """Return what a detection on a port consists of."""
    return tuple(name for name in ROWS["detections"] if name in port.tensors)


def polygon_of(region: Any) -> Array:
    """Return f64 [corners, 2] of a rectangle ``[x1, y1, x2, y2]`` or a list of points."""
    if _shape_of(region) == "rectangle":
        x1, y1, x2, y2 = region
        region = ((x1, y1), (x2, y1), (x2, y2), (x1, y2))
    return np.array(region, np.float64)


def inside(x: Array, y: Array, polygon: Array) -> Array:
    """Say of each point whether it lies in a polygon, by the even-odd rule.

    A left or upper edge belongs to the polygon, a right or lower one does not: regions side by
    side share no point.
    """
    # Each edge from its upper end down, so that both regions along it compute the same numbers.
    ends = np.stack([polygon, np.roll(polygon, -1, axis=0)], axis=1)
    ends = np.where((ends[:, 0, 1] > ends[:, 1, 1])[:, None, None], ends[:, ::-1], ends)
    (x1, y1), (x2, y2) = ends[:, 0].T, ends[:, 1].T
    rise = np.where(y1 == y2, 1.0, y2 - y1)
    y_of = y[:, None]
    crosses = (y1 <= y_of) != (y2 <= y_of)
    is_left = x[:, None] < x1 + (x2 - x1) * (y_of - y1) / rise
    odd: Array = (crosses & is_left).sum(1) % 2 == 1
    return odd


def _check_region(polygon: Array) -> None:
    if len(polygon) < 3:
        msg = f"a region of {len(polygon)} corners has no area: give at least three"
        raise ValueError(msg)
    x, y = polygon[:, 0], polygon[:, 1]
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        msg = "the region has no area"
        raise ValueError(msg)


def _unknown_labels(wanted: tuple[str, ...], known: list[str], context: PlanContext) -> list[Fault]:
    faults = []
    for label in wanted:
        if label in known:
            continue
        mend = choices(label, known, "Its labels")
        fault = f"what arrives has no label {label!r}"
        faults.append(Fault(f"{context.place}, labels", fault, mend))
    return faults
