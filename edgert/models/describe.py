"""What is known of a model before it is compiled: the data that preprocess and postprocess need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from edgert.tensor import TensorSpec


class ImageInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a picture becomes the model's input.

    Attributes:
        tensor: Name of the input.
        layout: ``NCHW`` or ``NHWC``.
        colour: ``RGB``, ``BGR`` or ``GRAY``: the order of channels.
        resize: ``letterbox-centre``, ``letterbox-top-left``, ``fit-height`` or ``stretch``.
        pad: Value of the letterbox's border, 0-255, before scale and mean.
        scale: Factor applied to 0-255 values first; 1 leaves them.
        mean: Per channel in the model's order, subtracted after ``scale``; empty for none.
        std: Per channel, divided by last; empty for none.
    """

    tensor: str
    layout: str
    colour: str
    resize: str
    pad: int = 114
    scale: float = 1.0
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


class DetectionHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's outputs become detections.

    Attributes:
        family: ``ssd`` (post-processed boxes, classes, scores, count), ``yolox`` (raw heads with
            grid and stride), ``yolo`` (Ultralytics v5 / v8 to v12), ``yolo-nms-free`` (end to end),
            ``centerface``, ``blazeface``, ``yunet``.
        tensors: Role -> name of the output. ssd: boxes, classes, scores, count; centerface:
            heatmap, scale, offset, landmarks; blazeface: boxes, scores; yunet: cls_8, obj_8,
            bbox_8, kps_8, the same for 16 and 32; others: predictions.
        strides: Strides of the heads, for yolox and blazeface.
        labels: Name of each class.
        class_offset: What a class number of the model has over the index into ``labels`` (1 where
            0 is the background).
        normalised: Whether boxes are 0-1 of the input instead of pixels of it.
    """

    family: str
    tensors: dict[str, str]
    strides: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    class_offset: int = 0
    normalised: bool = False


class PoseHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's outputs become poses.

    Attributes:
        family: ``movenet`` (one person: y, x, score of each point, 0-1 of the input) or
            ``blazepose`` (one person: x, y, z, visibility, presence in pixels of the input).
        tensors: Role -> name of the output: keypoints; for blazepose also score.
        keypoints: Name of each point.
    """

    family: str
    tensors: dict[str, str]
    keypoints: tuple[str, ...] = ()


class SegmentationHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's output becomes a mask of classes, of which 0 is the background.

    Attributes:
        family: ``classes`` (the number of the class of each pixel), ``scores`` (a score for each
            class at each pixel) or ``probability`` (0-1 that a pixel is of the one class).
        tensors: Role -> name of the output: mask.
        labels: Name of each class, that of the background first.
    """

    family: str
    tensors: dict[str, str]
    labels: tuple[str, ...] = ()


class ClassificationHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's output becomes classes with scores.

    Attributes:
        tensors: Role -> name of the output: scores, one for each class.
        labels: Name of each class.
        logits: Whether softmax has still to make probabilities of them.
    """

    tensors: dict[str, str]
    labels: tuple[str, ...] = ()
    logits: bool = False


class LinesHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's output becomes lines of text that are still to be read.

    Attributes:
        family: ``db``: the probability of each pixel that it is inside of a line (differentiable
            binarization).
        tensors: Role -> name of the output: probability.
    """

    family: str
    tensors: dict[str, str]


class TextHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's output becomes the text of one line.

    Attributes:
        family: ``ctc``: a probability for each character at each step, the blank first.
        tensors: Role -> name of the output: scores.
        characters: Key of the model file's own metadata that lists the characters, one a line.
        has_space: Whether a space follows the characters that are listed.
    """

    family: str
    tensors: dict[str, str]
    characters: str = ""
    has_space: bool = False


class Handling(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What preprocess and postprocess must know of a model; None where nobody said, or not of it.

    Attributes:
        image: How pictures go in.
        detection: How detections come out.
        pose: How poses come out.
        segmentation: How masks come out.
        classification: How classes come out.
        lines: How lines of text come out.
        text: How the text of a line comes out.
    """

    image: ImageInput | None = None
    detection: DetectionHead | None = None
    pose: PoseHead | None = None
    segmentation: SegmentationHead | None = None
    classification: ClassificationHead | None = None
    lines: LinesHead | None = None
    text: TextHead | None = None


class ModelDescription(Handling, frozen=True):
    """A model as the plan sees it.

    Attributes:
        name: Catalog name, or the file's name.
        path: The file, or the folder of a SavedModel; empty where it has still to be pulled.
        sha256: Checksum of its files, lower-case hex.
        format: ``onnx``, ``openvino-ir``, ``tensorflow``, ``saved-model``, ``tflite`` or
            ``paddle``.
        inputs: Inputs after fixing shapes.
        outputs: Outputs after fixing shapes.
        shapes: The shapes that were fixed, as given to the backend.
        licence: SPDX name; empty where not known.
    """

    name: str
    path: str
    sha256: str
    format: str
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    shapes: dict[str, list[int]] = {}
    licence: str = ""


class ModelReader(Protocol):
    """What ``plan`` may ask about a model, without any library of a vendor."""

    def describe(self, model: str, shapes: Mapping[str, Any]) -> ModelDescription:
        """Return what is known of a name, path or URL, with ``shapes`` fixed."""
        ...

    def read_ahead(self, model: str, several: Sequence[Mapping[str, Any]]) -> None:
        """Read several shapes at once, each of which ``describe`` is going to be asked about."""
        ...
