"""``postprocess.detection``: a model's outputs become boxes in pixels of the source frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from annotated_types import Interval

from edgert.options import Pixels, option
from edgert.stages.base import (
    Inputs,
    Outputs,
    PlanContext,
    Ports,
    Stage,
    StageOptions,
)
from edgert.stages.geometry import clip_boxes, map_boxes, map_points
from edgert.stages.postprocess.blazeface import BlazeFaceDecoder
from edgert.stages.postprocess.candidates import Candidates, Decoder, Overlaps
from edgert.stages.postprocess.centerface import CenterFaceDecoder
from edgert.stages.postprocess.described import read_names
from edgert.stages.postprocess.fit import SCORES, fit
from edgert.stages.postprocess.head import Head, merge
from edgert.stages.postprocess.quantised import Dequantiser, warn_of_coarse_scores
from edgert.stages.postprocess.sizes import BySize, in_each_size, sizes_of
from edgert.stages.postprocess.ssd import SsdDecoder
from edgert.stages.postprocess.yolo import YoloDecoder, YoloNmsFreeDecoder
from edgert.stages.postprocess.yolox import YoloxDecoder
from edgert.stages.postprocess.yunet import YunetDecoder
from edgert.tensor import IDENTITY, PortSpec, TensorSpec
from edgert.transport.address import Array

DECODERS: dict[str, Callable[[Head, float], Decoder]] = {
    "ssd": SsdDecoder,
    "yolox": YoloxDecoder,
    "yolo": YoloDecoder,
    "yolo-nms-free": YoloNmsFreeDecoder,
    "centerface": CenterFaceDecoder,
    "blazeface": BlazeFaceDecoder,
    "yunet": YunetDecoder,
}
# Boxes are cut to so many times the model's input before NMS: a wild one does not blur the others.
_SANE = 16.0
Stride = Annotated[int, Interval(ge=1, le=1024)]


class DetectionOptions(StageOptions):
    """Options of ``postprocess.detection``; what is left out comes from the model's metadata."""

    threshold: float = option(default=0.4, gt=0, le=1, description="Lowest score of a detection.")
    iou: float = option(
        default=0.45,
        ge=0,
        le=1,
        description="Of two boxes that overlap by more, only the better stays; blazeface's become "
        "one.",
    )
    agnostic: bool = option(
        default=False, description="Whether boxes of different classes suppress each other too."
    )
    max_detections: int = option(
        default=100,
        ge=1,
        le=10_000,
        description="At most so many detections a frame, the best ones.",
    )
    model: str | None = option(
        default=None, description="Model whose metadata is used; else the one whose outputs arrive."
    )
    family: (
        Literal["ssd", "yolox", "yolo", "yolo-nms-free", "centerface", "blazeface", "yunet"] | None
    ) = option(
        default=None,
        description="How the outputs are to be read. Landmarks, left and right as the person has "
        "them: centerface and yunet give right eye, left eye, nose, right and left corner of the "
        "mouth; blazeface right eye, left eye, nose, mouth, right ear, left ear.",
    )
    tensors: dict[str, str] | None = option(
        default=None,
        description="Role -> name of the output. ssd: `boxes`, `classes`, `scores`, `count`; "
        "centerface: `heatmap`, `scale`, `offset`, `landmarks`; blazeface: `boxes`, `scores`; "
        "yunet: `cls_8`, `obj_8`, `bbox_8`, `kps_8`, the same for 16 and 32 (not needed where the "
        "outputs have these names); the others: `predictions`.",
    )
    labels: tuple[str, ...] | str | None = option(
        default=None, description="Name of each class, or a text file with one on each line."
    )
    strides: tuple[Stride, ...] | None = option(
        default=None, description="Strides of the heads of yolox or blazeface."
    )
    normalised: bool | None = option(
        default=None,
        description="Whether the model's boxes are 0-1 of its input instead of pixels.",
    )
    class_offset: int | None = option(
        default=None, ge=0, le=1000, description="Number of the model's first labelled class."
    )
    size: tuple[Pixels, Pixels] | None = option(
        default=None, description="`[width, height]` of the model's input, where it is not known."
    )

    def overrides(self) -> dict[str, Any]:
        """Return what was given of the model's head, but its labels."""
        keys = ("family", "tensors", "strides", "normalised", "class_offset")
        return {key: value for key in keys if (value := getattr(self, key)) is not None}


class DetectionPostprocess(Stage):
    """Find the detections in a model's outputs, as boxes in pixels of the source frame."""

    inputs: ClassVar[Mapping[str, str]] = {"raw": "tensors"}
    outputs: ClassVar[Mapping[str, str]] = {"detections": "detections"}
    options: ClassVar[type[StageOptions]] = DetectionOptions
    is_stateless = True
    live_options = frozenset({"threshold", "iou", "agnostic"})
    settings: DetectionOptions

    @classmethod
    def plan(
        cls, options: DetectionOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Say how many detections there may be, and put into attributes how they are found."""
        port, where = inputs["raw"], f"{context.place}, input 'raw'"
        each = in_each_size(options.model, port, context)
        described = each[0].model
        given = options.overrides()
        if options.labels is not None:
            given["labels"] = read_names(options.labels, "labels", context)
        wanted = merge(described.detection if described else None, given, where)
        sizes = sizes_of(each, options.size, where)
        heads = [fit(wanted, size, one.port, where) for size, one in zip(sizes, each, strict=True)]
        return {"detections": detections_port(options.max_detections, wanted.labels, heads)}

    def open(self) -> None:
        """Import OpenCV and make the decoder."""
        import cv2

        from edgert.stages.postprocess.nms import blend, suppress

        cv2.setNumThreads(self.context.threads)
        attributes = self.context.outputs["detections"].attributes
        self._heads = msgspec.convert(attributes["heads"], list[Head])
        self._head = self._heads[0]
        self._decoders = self._make_decoders(self.settings.threshold)
        self._suppress, self._blend = suppress, blend
        arriving = self.context.inputs["raw"].tensors
        named = self._head.tensors
        self._dequantiser = Dequantiser({name: arriving[name] for name in named.values()})
        scores = [name for role, name in named.items() if role in SCORES]
        warn_of_coarse_scores(scores, arriving, self.context.place, self.context.log)
        width = max(head.width for head in self._heads) * _SANE
        height = max(head.height for head in self._heads) * _SANE
        self._most = np.array((width, height, width, height))
        self._least = -self._most
        self._has_warned = False

    def change(self, options: DetectionOptions) -> None:
        """Take another threshold over, which the decoder knows, too."""
        super().change(options)
        self._decoders = self._make_decoders(options.threshold)

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write the detections of one frame, best first."""
        sample, loan = inputs["raw"], outputs["detections"]
        header = sample.header
        with np.errstate(all="ignore"):  # a model may give anything; what is no number is dropped
            tensors = self._dequantiser.floats(sample.tensors)
            decoder = self._decoders.of(header)
            found = self._sort_out(decoder.decode(tensors), decoder)
        boxes = map_boxes(found.boxes, header.transform)
        boxes = clip_boxes(boxes, header.width, header.height).astype(np.float32)
        has_sides = boxes[:, 2:] > boxes[:, :2]
        if not has_sides.all():
            inside = np.flatnonzero(has_sides.all(1))
            boxes, found = boxes.take(inside, 0), found.take(inside)
        count = len(boxes)
        loan.tensor("boxes", (count, 4))[...] = boxes
        loan.tensor("scores", (count,))[...] = found.scores
        loan.tensor("classes", (count,))[...] = found.classes
        if found.landmarks is not None:
            points = map_points(found.landmarks, header.transform)
            loan.tensor("landmarks", points.shape)[...] = points
        loan.set_transform(IDENTITY)

    def _make_decoders(self, threshold: float) -> BySize[Decoder]:
        heads, make = self._heads, DECODERS[self._head.family]
        sizes = [(head.width, head.height) for head in heads]
        return BySize(sizes, [make(head, threshold) for head in heads])

    def _sort_out(self, found: Candidates, decoder: Decoder) -> Candidates:
        """Return the best detections: whole boxes of known classes, one for each object."""
        boxes = np.minimum(np.maximum(found.boxes, self._least), self._most)
        classes = found.classes.astype(np.int32)
        if self._head.class_offset:
            classes -= np.int32(self._head.class_offset)
        points = found.landmarks
        if points is not None:
            points = np.minimum(np.maximum(points, self._least[:2]), self._most[:2])
        may_be_unknown = decoder.reads_classes or self._head.class_offset > 0
        is_known = self._known(classes, found.classes) if may_be_unknown else None
        found = Candidates(boxes, found.scores, classes, points)
        good = _good(found, is_known)
        return self._one_each(found if good is None else found.take(good), decoder.overlaps)

    def _known(self, classes: Array, said: Array) -> Array:
        """Return a mask of the classes that there are; told the first time that others come."""
        is_known: Array = (classes >= 0) & (classes < self._head.classes)
        if not self._has_warned and not is_known.all():
            self._warn(said[~is_known])
        return is_known

    def _one_each(self, found: Candidates, overlaps: Overlaps) -> Candidates:
        """Return the best ones, of which no two show the same object."""
        settings, most = self.settings, self.settings.max_detections
        if overlaps == "none":
            return found.take(np.argsort(-found.scores, kind="stable")[:most])
        classes = np.zeros_like(found.classes) if settings.agnostic else found.classes
        if overlaps == "blend":
            return self._blend(found, classes, settings.iou, most)
        kept = self._suppress(found.boxes, found.scores, classes, settings.iou)
        return found.take(kept[:most])

    def _warn(self, unknown: Array) -> None:
        self._has_warned = True
        self.context.log.warning(
            "%s: the model gives class %g and there are %d labels: such boxes are left out",
            self.context.place,
            unknown[0],
            self._head.classes,
        )


def _good(found: Candidates, is_known: Array | None) -> Array | None:
    """Return which boxes are whole, with numbers for scores and points; None where all are.

    Mostly all are, which a few questions tell: what is good is looked for only where one is not.
    """
    whole = found.boxes[:, 2:] > found.boxes[:, :2]  # NaN is not
    points = found.landmarks
    if (
        whole.all()
        and found.scores.sum() < np.inf
        and (is_known is None or is_known.all())
        and (points is None or not np.isnan(points).any())
    ):
        return None
    good: Array = whole.all(1) & (found.scores < np.inf)
    if is_known is not None:
        good &= is_known
    if points is not None:
        good &= ~np.isnan(points).any((1, 2))
    return np.flatnonzero(good)


def detections_port(most: int, labels: tuple[str, ...], heads: Sequence[Head]) -> PortSpec:
    """Return a port of up to ``most`` detections a frame, from a head for each size of input."""
    landmarks = heads[0].landmarks
    tensors = {
        "boxes": TensorSpec("f32", (most, 4)),
        "scores": TensorSpec("f32", (most,)),
        "classes": TensorSpec("i32", (most,)),
    }
    attributes = {"labels": list(labels), "heads": msgspec.to_builtins(heads)}
    if landmarks:
        tensors["landmarks"] = TensorSpec("f32", (most, len(landmarks), 2))
        attributes["landmarks"] = list(landmarks)
    return PortSpec("detections", tensors, attributes=attributes)
