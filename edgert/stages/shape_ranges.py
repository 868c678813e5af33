"""Inputs of several sizes: ``shape: {x: [1, 3, [320, 640], 640]}`` prepares for two shapes.

Every shape is a session of its own, compiled and warmed up before the run: accelerators need fixed
shapes, and a runtime that met each new size as it came would stall a frame for it and never give
its memory back. Slots have room for the largest; a frame of a shape that was not named is lost.
``preprocess.image`` writes each picture in the size that suits it best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from edgert.errors import Fault, UserError
from edgert.models.describe import ModelDescription
from edgert.stages.base import PlanContext
from edgert.tensor import PortSpec, TensorSpec

Asked = Mapping[str, Sequence[int | list[int]]]
Shapes = dict[str, list[int]]

SHAPES = "shapes"  # attribute of the port of infer: every combination, where there are several
MEND = "Give one size for each dimension in 'shape' of the stage that runs the model"


def combinations(asked: Asked) -> list[Shapes]:
    """Return every combination of sizes, the largest one first."""
    inputs = [
        [list(sizes) for sizes in product(*(_choices(size) for size in shape))]
        for shape in asked.values()
    ]
    return [dict(zip(asked, shapes, strict=True)) for shapes in product(*inputs)]


def largest(asked: Asked) -> Shapes:
    """Return the largest size of each dimension: the first of the combinations."""
    return {name: [_choices(size)[0] for size in shape] for name, shape in asked.items()}


def has_ranges(asked: Asked) -> bool:
    """Whether a dimension has several sizes."""
    return any(len(_choices(size)) > 1 for shape in asked.values() for size in shape)


def choices_of(asked: Asked, tensor: str) -> list[list[int]]:
    """Return the sizes that are named for each dimension of an input, the largest first."""
    shape = asked.get(tensor, asked.get(f"{tensor}:0", ()))
    return [_choices(size) for size in shape]


def refuse_ranges(port: PortSpec, where: str) -> None:
    """Refuse outputs of several shapes, for stages that know one.

    Raises:
        UserError: The model before this stage takes inputs of several shapes.
    """
    if SHAPES in port.attributes:
        count = len(port.attributes[SHAPES])
        raise UserError(where, f"the model runs in {count} shapes, and this stage knows one", MEND)


def range_faults(
    model: ModelDescription, asked: Asked, context: PlanContext, *, is_batched: bool
) -> Iterator[Fault]:
    """Find what keeps a model from running in several shapes.

    Args:
        model: The model in its largest shape.
        asked: The sizes as in the file.
        context: Who describes models.
        is_batched: Whether frames are put together, which have to be of one shape.
    """
    place = f"{context.place}, shape"
    if not has_ranges(asked):
        return
    if is_batched:
        yield Fault(place, "batches of frames of several shapes are not supported", MEND)
    if not model.path:
        return
    others = combinations(asked)[1:]
    context.models.read_ahead(model.path, [{**model.shapes, **shapes} for shapes in others])
    for shapes in others:
        try:
            found = context.models.describe(model.path, {**model.shapes, **shapes})
        except UserError as error:
            yield Fault(place, f"{said(shapes)}: {error.faults[0].fault}", "Leave it out")
            continue
        for name, spec in found.outputs.items():
            if not _is_within(spec, model.outputs[name]):
                fault = (
                    f"{said(shapes)}: output {name!r} is {spec}, more than {model.outputs[name]}"
                )
                yield Fault(place, fault, "Leave it out")


def said(shapes: Mapping[str, Sequence[int]]) -> str:
    """Return shapes as people read them."""
    return ", ".join(f"{name} {list(sizes)}" for name, sizes in shapes.items())


def port_attributes(asked: Asked) -> dict[str, Any]:
    """Return what readers of the outputs, and ``open``, need to know."""
    return {SHAPES: combinations(asked)} if has_ranges(asked) else {}


def common(specs: Sequence[Mapping[str, TensorSpec]]) -> dict[str, TensorSpec]:
    """Return what tensors of several shapes have in common: None where sizes differ."""
    first = specs[0]
    return {
        name: TensorSpec(
            spec.dtype,
            tuple(
                sizes[0] if len(set(sizes)) == 1 else None
                for sizes in zip(*(each[name].shape for each in specs), strict=True)
            ),
            spec.quantisation,
        )
        for name, spec in first.items()
    }


def _choices(size: int | list[int]) -> list[int]:
    return [size] if isinstance(size, int) else sorted(set(size), reverse=True)


def _is_within(spec: TensorSpec, most: TensorSpec) -> bool:
    return (
        spec.dtype == most.dtype
        and len(spec.shape) == len(most.shape)
        and all(
            size is None or limit is None or size <= limit
            for size, limit in zip(spec.shape, most.shape, strict=True)
        )
    )
