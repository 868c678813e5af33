"""What travels between stages: tensors, the port that carries them, and the header of a frame."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import msgspec

# Our names of element types -> numpy's. The position in this table is the code that a slot carries.
DTYPES: dict[str, str] = {
    "u8": "uint8",
    "i8": "int8",
    "u16": "uint16",
    "i16": "int16",
    "u32": "uint32",
    "i32": "int32",
    "u64": "uint64",
    "i64": "int64",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bool": "bool",
}
ITEM_BYTES: dict[str, int] = {
    name: 1 if name == "bool" else int(name.lstrip("uif")) // 8 for name in DTYPES
}
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)

# Pixel formats of an ``image`` port and the tensors (planes) each one has, in order.
# Chroma planes round up: 321x241 has chroma of 161x121.
PIXEL_FORMATS: dict[str, tuple[str, ...]] = {
    "i420": ("y", "u", "v"),
    "nv12": ("y", "uv"),
    "gray8": ("y",),
    "bgr24": ("bgr",),
    "rgb24": ("rgb",),
}
# Kinds of ports that tell of things, and the tensors with a row for each of them, where a port has
# them. Who writes them is asked whether they are of one length (``stages/refusals.py``).
ROWS: dict[str, tuple[str, ...]] = {
    "detections": ("boxes", "scores", "classes", "landmarks", "corners"),
    "poses": ("keypoints", "scores"),
    "classification": ("scores", "classes"),
    "lines": ("corners", "scores"),
}
COLOUR_MATRICES = ("bt601", "bt709", "bt2020")
COLOUR_RANGES = ("limited", "full")


class Quantisation(msgspec.Struct, frozen=True):
    """What whole numbers of a tensor stand for: ``(number - zero_point) * scale``.

    Attributes:
        scale: Of the whole tensor; never 0, which in TFLite means that it is not quantised.
        zero_point: The number that stands for 0.
    """

    scale: float
    zero_point: int = 0


class TensorSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """Element type and shape of a tensor.

    Attributes:
        dtype: A key of ``DTYPES``.
        shape: Size of each dimension; None where it is not known before a frame is there. On a
            port of a plan every size is known: it is the largest the tensor may have.
        quantisation: Of a model's input or output of whole numbers; None where it has none, or the
            runtime that read the model does not say it.
    """

    dtype: str
    shape: tuple[int | None, ...]
    quantisation: Quantisation | None = None

    @property
    def plain(self) -> TensorSpec:
        """The same without its quantisation: what has to be equal for memory to fit."""
        return self if self.quantisation is None else TensorSpec(self.dtype, self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every dimension is known."""
        return None not in self.shape

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor, unknown dimensions counted as 1."""
        return (
            prod(size or (1 if size is None else 0) for size in self.shape)
            * (ITEM_BYTES[self.dtype])
        )

    def __str__(self) -> str:
        """Return for example ``f32[1,3,416,416]``."""
        sizes = ",".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.dtype}[{sizes}]"


class PortSpec(msgspec.Struct, frozen=True):
    """What an output port of a planned stage carries: the upper bounds that size its slots.

    Attributes:
        kind: ``image``, ``tensors``, ``detections``, or a name of a third party's own.
        tensors: Every tensor that a frame on this port may have, with its largest shape.
        metadata_bytes: Room for a frame's msgpack metadata.
        attributes: What readers need to know once, not per frame: ``labels`` of classes, a
            model's name, ... JSON-able values only.
    """

    kind: str
    tensors: dict[str, TensorSpec]
    metadata_bytes: int = 0
    attributes: dict[str, Any] = {}


class FrameHeader(NamedTuple):
    """The header of a frame, as it stands in its slot (``transport/slot.py`` draws the bytes).

    Attributes:
        stream: Number of the source, from 0 in the order of the file.
        sequence: Number of the frame in its stream, from 0, without holes at the source.
        epoch: Raised when a stream starts anew (its time restarts).
        pts_ns: Presentation time by the container, in nanoseconds from the stream's start.
        captured_ns: Monotonic clock when the source had the frame.
        width: Width of the source frame in pixels, after rotation.
        height: Height of the source frame in pixels, after rotation.
        transform: Affine (a, b, c, d, e, f) from pixels of the image or tensor in this slot to
            pixels of the source frame: ``x' = a*x + b*y + c``, ``y' = d*x + e*y + f``. Boxes that
            a model gives in its own input pixels go through it; nobody guesses the letterbox.
        pixel_format: A key of ``PIXEL_FORMATS``; of the image in this slot, or the one it was.
        colour_matrix: One of ``COLOUR_MATRICES``; for the YUV formats.
        colour_range: One of ``COLOUR_RANGES``; for the YUV formats.
        is_partial: The picture is known to be incomplete or damaged (a truncated JPEG, ...).
        input_width: Width of the model's input that was made of the frame last: where a model runs
            in several sizes, its outputs alone do not tell in which; 0 where nobody has said it.
        input_height: The same for its height.
    """

    stream: int = 0
    sequence: int = 0
    epoch: int = 0
    pts_ns: int = 0
    captured_ns: int = 0
    width: int = 0
    height: int = 0
    transform: tuple[float, float, float, float, float, float] = IDENTITY
    pixel_format: str = "i420"
    colour_matrix: str = "bt601"
    colour_range: str = "limited"
    is_partial: bool = False
    input_width: int = 0
    input_height: int = 0


def image_port(
    width: int,
    height: int,
    formats: tuple[str, ...] = ("i420",),
    attributes: Mapping[str, Any] | None = None,
) -> PortSpec:
    """Return the port of images up to ``width`` x ``height`` in one of ``formats``.

    A slot has room for the planes of every format named; a frame uses those of its own. All u8:
    ``y`` [H, W]; ``u`` and ``v`` [ceil(H/2), ceil(W/2)]; ``uv`` [ceil(H/2), ceil(W/2), 2];
    ``bgr`` and ``rgb`` [H, W, 3].
    """
    half = ((height + 1) // 2, (width + 1) // 2)
    shapes = {
        "y": (height, width),
        "u": half,
        "v": half,
        "uv": (*half, 2),
        "bgr": (height, width, 3),
        "rgb": (height, width, 3),
    }
    names = dict.fromkeys(plane for name in formats for plane in PIXEL_FORMATS[name])
    tensors = {name: TensorSpec("u8", shapes[name]) for name in names}
    return PortSpec("image", tensors, 0, dict(attributes or {}))
