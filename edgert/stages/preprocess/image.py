"""``preprocess.image``: a frame's picture becomes a model's input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec

from edgert.backends.base import ByteInput
from edgert.backends.byte_input import CONVERTIBLE
from edgert.errors import UserError
from edgert.models.describe import ImageInput
from edgert.options import Number, Pixels, option
from edgert.stages.base import (
    Inputs,
    Outputs,
    PlanContext,
    Ports,
    Stage,
    StageOptions,
)
from edgert.stages.geometry import compose
from edgert.stages.infer_check import BYTE_INPUTS
from edgert.stages.infer_options import InferOptions
from edgert.stages.preprocess.geometry import Resize
from edgert.stages.preprocess.target import Target, find_model, resolve
from edgert.tensor import PIXEL_FORMATS, PortSpec, TensorSpec

PLANES = frozenset(plane for planes in PIXEL_FORMATS.values() for plane in planes)
SIZES = "sizes"  # attribute of the port: width and height of each input, where there are several


class ImagePreprocessOptions(StageOptions):
    """Options of ``preprocess.image``; what is left out comes from the model's own metadata."""

    feeds: str | None = option(
        default=None,
        alias="for",
        description="Stage whose model is fed; its input is written directly.",
    )
    model: str | None = option(
        default=None,
        description="Model that is fed, where no stage of this file runs it (instead of `for`).",
    )
    tensor: str | None = option(
        default=None, description="Input of the model that takes the picture, where it has several."
    )
    size: tuple[Pixels, Pixels] | None = option(
        default=None,
        description="`[width, height]` of the model's input, where the model leaves it open.",
    )
    resize: Resize | None = option(
        default=None,
        description="`letterbox-centre` and `letterbox-top-left` keep the aspect, `stretch` does "
        "not; `fit-height` does where the width suffices.",
    )
    scale_up: bool = option(
        default=True, description="Whether a letterbox enlarges pictures smaller than the input."
    )
    pad: int | None = option(
        default=None, ge=0, le=255, description="Level of the letterbox's border, before `scale`."
    )
    colour: Literal["RGB", "BGR", "GRAY"] | None = option(
        default=None, description="Order of the model's channels."
    )
    layout: Literal["NCHW", "NHWC"] | None = option(
        default=None,
        description="Order of the input's dimensions; told from its shape where that can be.",
    )
    scale: Number | None = option(
        default=None,
        description="Factor on levels 0-255: 1 leaves them, 0.00392157 makes them 0-1.",
    )
    mean: tuple[Number, ...] | None = option(
        default=None, description="Subtracted after `scale`: one number, or one for each channel."
    )
    std: tuple[Number, ...] | None = option(
        default=None, description="Divided by after `mean`: one number, or one for each channel."
    )
    dtype: Literal["u8", "i8", "f16", "f32"] | None = option(
        default=None,
        description="Element type that the input must have; a model that differs is a fault.",
    )
    interpolation: Literal["linear", "area"] = option(
        default="linear",
        description="`linear` as detectors are mostly fed; `area` shrinks smoothly, and slowly.",
    )

    convert: Literal["in-model", "here"] = option(
        default="in-model",
        description="Where levels become the model's values: `in-model` leaves bytes and compiles "
        "`scale`, `mean` and `std` into the model of `for` if its input is f16 or f32; `here` "
        "writes the values, as it is always done with `model`.",
    )

    def check(self, given: frozenset[str]) -> None:
        """Refuse no model, and two of them."""
        if (self.feeds is None) == (self.model is None):
            msg = "give `for: STAGE` (the stage that runs the model) or `model: NAME`, one of them"
            raise ValueError(msg)

    def overrides(self) -> dict[str, Any]:
        """Return what was given of the model's input."""
        keys = (
            "tensor", "size", "resize", "pad", "colour", "layout", "scale", "mean", "std", "dtype",
        )  # fmt: skip
        return {key: value for key in keys if (value := getattr(self, key)) is not None}


class ImagePreprocess(Stage):
    """Scale a picture into a model's input, with the colours, layout and values it wants.

    Where the model is prepared for several sizes, each picture is written in the one that suits it
    best: those with the least border first, of them the smallest that need not shrink it.
    """

    inputs: ClassVar[Mapping[str, str]] = {"image": "image"}
    outputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors"}
    options: ClassVar[type[StageOptions]] = ImagePreprocessOptions
    is_stateless = True
    settings: ImagePreprocessOptions

    @classmethod
    def plan(
        cls, options: ImagePreprocessOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Say what is written: the model's input, or bytes that the model makes it of."""
        return {"tensor": input_port(options, inputs["image"], context)}

    def open(self) -> None:
        """Import OpenCV and make the writer."""
        import cv2

        from edgert.stages.preprocess.convert import InputWriter
        from edgert.stages.preprocess.paint import resizing

        cv2.setNumThreads(self.context.threads)
        port = self.context.outputs["tensor"]
        image = msgspec.convert(port.attributes["image"], ImageInput)
        self._writer = InputWriter(
            image,
            port.tensors[image.tensor],
            resizing(self.settings.interpolation),
            scale_up=self.settings.scale_up,
            sizes=[(width, height) for width, height in port.attributes.get(SIZES, ())],
        )

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write one picture, and into the header the way from the input back to the source."""
        sample, loan = inputs["image"], outputs["tensor"]
        header = sample.header
        placed = self._writer.write(sample.tensors, header, loan)
        to_source = compose(header.transform, placed.to_source)
        width, height = placed.target
        loan.set_header(
            header._replace(transform=to_source, input_width=width, input_height=height)
        )


def input_port(options: ImagePreprocessOptions, image: PortSpec, context: PlanContext) -> PortSpec:
    """Return the port of a model's input, or of bytes that the model makes it of.

    Raises:
        UserError: The model's input is not known, or what arrives as ``image`` is no picture.
    """
    fed = find_model(options.feeds, options.model, context)
    target = resolve(fed, options.overrides(), context.place)
    _check_planes(image, target.name, context.place)
    if options.convert == "in-model" and _converts(options.feeds, target.spec, context):
        return _bytes_port(target)
    attributes = {"image": msgspec.to_builtins(target.image), **_sizes(target)}
    return PortSpec("tensors", {target.image.tensor: target.spec}, attributes=attributes)


def _bytes_port(target: Target) -> PortSpec:
    """Return a port of bytes, with what the model has to do to them."""
    image = target.image
    conversion = ByteInput(image.layout, image.scale, image.mean, image.std)
    levels = msgspec.structs.replace(image, scale=1.0, mean=(), std=())
    attributes = {
        "image": msgspec.to_builtins(levels),
        BYTE_INPUTS: {image.tensor: msgspec.to_builtins(conversion)},
        **_sizes(target),
    }
    tensors = {image.tensor: TensorSpec("u8", target.spec.shape)}
    return PortSpec("tensors", tensors, attributes=attributes)


def _sizes(target: Target) -> dict[str, Any]:
    return {SIZES: msgspec.to_builtins(target.sizes)} if target.sizes else {}


def _converts(stage: str | None, spec: TensorSpec, context: PlanContext) -> bool:
    """Tell whether a stage runs its model in a way that can convert its input."""
    runs_it = stage is not None and isinstance(context.stages[stage], InferOptions)
    return runs_it and spec.dtype in CONVERTIBLE


def _check_planes(port: PortSpec, target: str, place: str) -> None:
    strange = [
        f"{name} ({spec})"
        for name, spec in port.tensors.items()
        if name not in PLANES or spec.dtype != "u8"
    ]
    if strange or not port.tensors:
        fault = f"the image that arrives has {', '.join(strange) or 'no planes'}"
        mend = f"To fill {target} it needs u8 planes: {', '.join(sorted(PLANES))}"
        raise UserError(f"{place}, input 'image'", fault, mend)
