"""What a model wants as its picture: by its own metadata and the options, checked by its input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgert.errors import Fault, ModelError, PipelineError, UserError
from edgert.models.describe import ImageInput, ModelDescription
from edgert.pipeline.near import choices
from edgert.stages.base import PlanContext
from edgert.stages.geometry import Size
from edgert.stages.preprocess.colour import CHANNELS, exact_values
from edgert.stages.preprocess.geometry import RESIZES
from edgert.stages.shape_ranges import Asked, choices_of, largest
from edgert.tensor import TensorSpec

DTYPES = ("u8", "i8", "f16", "f32")
_LIMITS = {"u8": (0, 255), "i8": (-128, 127)}
_MUST_BE_GIVEN = ("resize", "colour", "scale")


class Fed(msgspec.Struct, frozen=True):
    """A model that is fed.

    Attributes:
        model: The model, in the largest of its shapes.
        name: How errors call it.
        asked: The shapes that its stage prepares for.
    """

    model: ModelDescription
    name: str
    asked: Asked = {}


class Target(msgspec.Struct, frozen=True):
    """One picture input of one model.

    Attributes:
        name: How errors call it: ``the input 'images' of model 'yolox-nano'``.
        image: How the picture becomes the input.
        spec: Element type and shape, every size known: the largest one.
        sizes: Width and height of each size that it may have, where it has several.
    """

    name: str
    image: ImageInput
    spec: TensorSpec
    sizes: tuple[Size, ...] = ()


def find_model(stage: str | None, model: str | None, context: PlanContext) -> Fed:
    """Return the model that is fed.

    Raises:
        UserError: There is no such stage, or it runs no model, or the model cannot be described.
    """
    if stage is None:
        return Fed(context.models.describe(model or "", {}), f"model {model!r}")
    if stage not in context.stages:
        mend = choices(stage, context.stages, "The file's stages")
        raise UserError(f"{context.place}, for", f"there is no stage {stage!r}", mend)
    options = context.stages[stage]
    fed = getattr(options, "model", None)
    if fed is None:
        mend = "Name the stage that runs the model, or give `model:` instead of `for:`"
        raise UserError(f"{context.place}, for", f"stage {stage!r} runs no model", mend)
    shape = getattr(options, "shape", None) or {}
    described = context.models.describe(fed, largest(shape))
    return Fed(described, f"model {fed!r} of stage {stage!r}", shape)


def resolve(fed: Fed, given: Mapping[str, Any], where: str) -> Target:
    """Return what the model wants, where ``given`` goes before the model's own metadata.

    Args:
        fed: The model.
        given: The options that were given: fields of ``ImageInput``, ``size`` and ``dtype``.
        where: The place of errors.

    Raises:
        UserError: Something is neither known nor given, or does not fit the model's input.
    """
    described = fed.model
    tensor = _choose_tensor(described, fed.name, given.get("tensor"), where)
    name = f"the input {tensor!r} of {fed.name}"
    spec = described.inputs[tensor]
    known = described.image if described.image and described.image.tensor == tensor else None
    fields = _merge(known, given, name, where)
    layout = fields.setdefault("layout", _layout_of(spec, name, where))
    image = _quantised(ImageInput(tensor=tensor, **fields), spec)
    filled = _fill(spec, layout, given.get("size"), tensor, name, where)
    choices = choices_of(fed.asked, tensor)
    faults = [
        *_choice_faults(layout, choices, given, name),
        *_shape_faults(image, filled, given, name),
        *_value_faults(image, spec, name),
    ]
    if faults:
        raise PipelineError([Fault(where, fault, mend) for fault, mend in faults])
    return Target(name, image, filled, _sizes_of(layout, choices))


def _choose_tensor(described: ModelDescription, model: str, wanted: str | None, where: str) -> str:
    names = ", ".join(described.inputs)
    if wanted is None and described.image is not None:
        wanted = described.image.tensor
    if wanted is None and len(described.inputs) == 1:
        return next(iter(described.inputs))
    if wanted is None:
        fault = f"{model} has {len(described.inputs)} inputs"
        raise UserError(where, fault, f"Name one by `tensor:`: {names}")
    if wanted not in described.inputs:
        raise UserError(where, f"{model} has no input {wanted!r}", f"Its inputs: {names}")
    return wanted


def _merge(
    known: ImageInput | None, given: Mapping[str, Any], name: str, where: str
) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(known) if known else {}
    fields.pop("tensor", None)
    fields |= {key: given[key] for key in ImageInput.__struct_fields__ if key in given}
    fields.pop("tensor", None)
    missing = [key for key in _MUST_BE_GIVEN if key not in fields]
    if missing:
        fault = f"nothing is known of how {name} wants its picture"
        raise UserError(where, fault, f"Give {', '.join(f'`{key}:`' for key in missing)}")
    return fields


def _quantised(image: ImageInput, spec: TensorSpec) -> ImageInput:
    """Return what makes a quantised input of the values that its model had before.

    Bytes that are not converted are what a quantised model of u8 takes: they stay.
    """
    mean, std = image.mean or (0.0,), image.std or (1.0,)
    is_bytes = spec.dtype == "u8" and image.scale == 1 and set(mean) == {0} and set(std) == {1}
    if spec.quantisation is None or is_bytes:
        return image
    channels = max(len(mean), len(std))
    mean, std = (values * channels if len(values) == 1 else values for values in (mean, std))
    if len(mean) != len(std):
        return image  # refused with its other faults
    step, zero = spec.quantisation.scale, spec.quantisation.zero_point
    # (level * scale - mean) / std is the value; value / step + zero the number that stands for it.
    shifted = [one - zero * step * by for one, by in zip(mean, std, strict=True)]
    return msgspec.structs.replace(image, mean=tuple(shifted), std=tuple(by * step for by in std))


def _layout_of(spec: TensorSpec, name: str, where: str) -> str:
    if len(spec.shape) != 4:
        fault = f"{name} is {spec}, and a picture needs four dimensions"
        raise ModelError(where, fault, "Choose another model, or another input by `tensor:`")
    is_nchw, is_nhwc = spec.shape[1] in (1, 3), spec.shape[3] in (1, 3)
    if is_nchw == is_nhwc:
        fault = f"the layout of {name}, {spec}, cannot be told from its shape"
        raise UserError(where, fault, "Give `layout: NCHW` or `layout: NHWC`")
    return "NCHW" if is_nchw else "NHWC"


def _fill(
    spec: TensorSpec,
    layout: str,
    size: tuple[int, int] | None,
    tensor: str,
    name: str,
    where: str,
) -> TensorSpec:
    """Fill what the model leaves open: a batch of one, and width and height from ``size``."""
    shape = [1 if spec.shape[0] is None else spec.shape[0], *spec.shape[1:]]
    at_height, at_width = (2, 3) if layout == "NCHW" else (1, 2)
    if size is not None:
        shape[at_width] = shape[at_width] or size[0]
        shape[at_height] = shape[at_height] or size[1]
    if None in shape:
        example = [1, 3, 416, 416] if layout == "NCHW" else [1, 416, 416, 3]
        mend = f"Fix it at the stage that runs the model, such as `shape: {{{tensor}: {example}}}`"
        raise ModelError(where, f"{name} leaves its size open: {spec}", mend)
    return TensorSpec(spec.dtype, tuple(shape))


def _sizes_of(layout: str, choices: Sequence[Sequence[int]]) -> tuple[Size, ...]:
    """Return every size of picture, the largest first; nothing where there is only one."""
    if all(len(sizes) == 1 for sizes in choices):
        return ()
    heights, widths = choices[2:] if layout == "NCHW" else choices[1:3]
    return tuple((width, height) for height in heights for width in widths)


def _choice_faults(
    layout: str, choices: Sequence[Sequence[int]], given: Mapping[str, Any], name: str
) -> Iterator[tuple[str, str]]:
    """Find what keeps a picture from being written in several sizes."""
    sides = (2, 3) if layout == "NCHW" else (1, 2)
    counts = [len(sizes) for sizes in choices]
    for dimension, count in enumerate(counts):
        if count > 1 and dimension not in sides:
            fault = f"'shape' names {count} sizes for dimension {dimension} of {name}"
            yield fault, "Only height and width of a picture may have several"
    if "size" in given and max(counts, default=1) > 1:
        yield f"`size:` is given, and 'shape' names several sizes of {name}", "Leave `size:` out"


def _shape_faults(
    image: ImageInput, spec: TensorSpec, given: Mapping[str, Any], name: str
) -> list[tuple[str, str]]:
    is_nchw = image.layout == "NCHW"
    batch, channels = spec.shape[0], spec.shape[1 if is_nchw else 3]
    size = spec.shape[3:1:-1] if is_nchw else spec.shape[2:0:-1]
    faults = []
    if batch != 1:
        fault = f"{name} is {spec}: a batch of {batch}, and preprocess.image writes one picture"
        faults.append((fault, "Fix its first dimension to 1 by `shape:` where the model runs"))
    if channels != CHANNELS[image.colour]:
        fault = f"{name} is {spec} with {channels} channels as {image.layout}"
        mend = f"colour {image.colour} has {CHANNELS[image.colour]}: mend `colour:` or `layout:`"
        faults.append((fault, mend))
    if "size" in given and tuple(given["size"]) != size:
        wanted = "x".join(map(str, given["size"]))
        fault = f"size {wanted} does not fit {name}, which is {spec}"
        faults.append((fault, f"It takes {size[0]}x{size[1]}: leave `size:` out"))
    if given.get("dtype", spec.dtype) != spec.dtype:
        fault = f"dtype {given['dtype']} does not fit {name}, which is {spec}"
        faults.append((fault, "Leave `dtype:` out"))
    return faults


def _value_faults(image: ImageInput, spec: TensorSpec, name: str) -> list[tuple[str, str]]:
    dtype = spec.dtype
    if image.resize not in RESIZES:
        return [(f"{name} wants resize {image.resize!r}", f"Known: {', '.join(RESIZES)}")]
    if dtype not in DTYPES:
        return [(f"{name} takes {dtype} elements", f"A picture can be {', '.join(DTYPES)}")]
    channels = CHANNELS[image.colour]
    lengths = [
        (f"`{key}:` has {len(values)} values and {name} has {channels} channels", "Give one each")
        for key, values in (("mean", image.mean), ("std", image.std))
        if len(values) not in (0, 1, channels)
    ]
    return lengths or _range_faults(image, spec, name)


def _range_faults(image: ImageInput, spec: TensorSpec, name: str) -> list[tuple[str, str]]:
    if 0 in image.std:
        return [(f"`std:` of {name} has a zero", "Give what each channel is divided by")]
    if spec.dtype not in _LIMITS:
        return []
    values = exact_values(image)
    low, high = min(map(min, values)), max(map(max, values))
    least, most = _LIMITS[spec.dtype]
    # What a quantised model was trained on may end a step after what its numbers can say.
    slack = 0.5 if spec.quantisation is None else 2.5
    if low < least - slack or high > most + slack or high - low < 16:
        said = f"values from {low:g} to {high:g} do not fit {name}, which holds {spec.dtype}"
        mend = f"Mend `scale:`, `mean:` or `std:` for {least} to {most}"
        if spec.quantisation is not None:
            mend = "Give `scale:`, `mean:` and `std:` as the model had them before quantisation"
        return [(said, mend)]
    return []
