"""A model that runs in several sizes: what arrives in each, and in which one a frame came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from edgert.errors import FrameLostError, UserError
from edgert.models.describe import ModelDescription
from edgert.stages.base import PlanContext
from edgert.stages.geometry import Size
from edgert.stages.postprocess.described import describe, input_size
from edgert.stages.shape_ranges import MEND, SHAPES
from edgert.tensor import FrameHeader, PortSpec, TensorSpec

Made = TypeVar("Made")


class Arriving(NamedTuple):
    """What arrives in one of a model's sizes.

    Attributes:
        model: The model in that size; None where nobody says which one it is.
        port: The tensors in that size.
    """

    model: ModelDescription | None
    port: PortSpec


def in_each_size(named: str | None, port: PortSpec, context: PlanContext) -> list[Arriving]:
    """Return what arrives in each size of the model, the largest first.

    Args:
        named: The model whose metadata the stage's options name; else that of the one that runs.
        port: What arrives.
        context: Who describes models.
    """
    described = describe(named, port, context)
    if SHAPES not in port.attributes:
        return [Arriving(described, port)]
    runs, fixed = port.attributes["model"], port.attributes["model_file"]["shapes"]
    found = []
    for shapes in port.attributes[SHAPES]:
        model = context.models.describe(runs, {**fixed, **shapes})
        arriving = msgspec.structs.replace(port, tensors=_tensors(port, model))
        found.append(Arriving(_with_inputs_of(model, described or model), arriving))
    return found


def sizes_of(each: Sequence[Arriving], given: Size | None, where: str) -> list[Size]:
    """Return width and height of the picture input in each size.

    Args:
        each: What arrives.
        given: By the stage's options.
        where: The place of errors.

    Raises:
        UserError: They are not known, or do not tell the shapes apart.
    """
    if given is not None and len(each) > 1:
        fault = f"`size:` is given, and the model runs in {len(each)} shapes"
        raise UserError(where, fault, "Leave `size:` out")
    sizes = [input_size(one.model, given, where) for one in each]
    if len(set(sizes)) < len(sizes):
        fault = "the model runs in several shapes for pictures of the same size"
        raise UserError(where, fault, MEND)
    return sizes


class BySize(Generic[Made]):
    """What a stage has made for each size, for the one that a frame came in.

    Args:
        sizes: Width and height of the model's input.
        made: What was made for each of them.
    """

    def __init__(self, sizes: Sequence[Sequence[int]], made: Sequence[Made]) -> None:
        self._made = {tuple(size): one for size, one in zip(sizes, made, strict=True)}
        self._only = made[0] if len(made) == 1 else None

    def of(self, header: FrameHeader) -> Made:
        """Return what was made for the size in which a frame came.

        Raises:
            FrameLostError: Several sizes are known, and the frame says none of them.
        """
        if self._only is not None:
            return self._only
        found = self._made.get((header.input_width, header.input_height))
        if found is None:
            known = ", ".join(f"{width}x{height}" for width, height in self._made)
            came = f"{header.input_width}x{header.input_height}"
            raise FrameLostError(
                f"its header says that the model's input was {came}, and the model has {known}"
            )
        return found


def _with_inputs_of(model: ModelDescription, known: ModelDescription) -> ModelDescription:
    """Return what is known of a model, with the inputs of the one that runs."""
    image = known.image if known.image and known.image.tensor in model.inputs else None
    return msgspec.structs.replace(known, inputs=model.inputs, image=image)


def _tensors(port: PortSpec, model: ModelDescription) -> dict[str, TensorSpec]:
    """Return what the model gives in one size; what it leaves open keeps its most."""
    return {
        name: model.outputs[name] if model.outputs[name].is_static else most
        for name, most in port.tensors.items()
    }
