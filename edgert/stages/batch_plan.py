"""Batches as the file asks for them, and models that have none: refused before the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgert.errors import Fault, UserError
from edgert.models.describe import ModelDescription
from edgert.options import Options, option
from edgert.stages.base import PlanContext
from edgert.tensor import TensorSpec

MEND = "Export it with an open batch dimension, or remove 'batch'"
BATCH = "batch"  # attribute of the port of infer
_MOST = 64


class BatchOptions(Options):
    """``batch:`` of ``infer``."""

    max_size: int = option(ge=1, le=_MOST, description="Frames that one inference takes at most.")
    max_delay_ms: float | None = option(
        default=None,
        ge=0,
        le=10_000,
        description="How long the first frame of a batch may wait for others. Left out: one frame "
        "interval, where several live streams that tell it feed the stage, else 0 (a batch is "
        "what came in while the device was busy).",
    )
    preferred_sizes: tuple[int, ...] = option(
        default=(),
        description="Sizes that the model is compiled for, beside `max_size`; a smaller batch runs "
        "at the next of them, its empty places unused. Left out: 1, 2, 4, 8, ...",
    )

    def check(self, given: frozenset[str]) -> None:
        """Refuse sizes that no batch has."""
        for size in self.preferred_sizes:
            if not 1 <= size <= self.max_size:
                msg = f"preferred size {size} is not between 1 and max_size {self.max_size}"
                raise ValueError(msg)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes to compile for, rising."""
        doubling = [1 << power for power in range(_MOST.bit_length())]
        chosen = self.preferred_sizes or [size for size in doubling if size < self.max_size]
        return tuple(sorted({*chosen, self.max_size}))


class BatchPlan(msgspec.Struct, frozen=True):
    """How batches are made, as it travels to the worker.

    Attributes:
        sizes: The sizes to compile for, rising; the last is the largest batch.
        delay_ms: How long the first frame may wait.
    """

    sizes: tuple[int, ...]
    delay_ms: float

    @property
    def max_size(self) -> int:
        """Frames of the largest batch."""
        return self.sizes[-1]


def plan_batches(options: BatchOptions | None, context: PlanContext) -> BatchPlan | None:
    """Return how batches are made; None where every frame is inferred alone."""
    if options is None or options.max_size == 1:
        return None
    delay_ms = options.max_delay_ms
    if delay_ms is None:
        delay_ms = context.frame_interval_ms if len(context.streams) > 1 else 0.0
    return BatchPlan(options.sizes, delay_ms)


def planned_batches(attributes: Mapping[str, Any]) -> BatchPlan | None:
    """Return what ``plan`` decided, in the worker."""
    found = attributes.get(BATCH)
    return None if found is None else msgspec.convert(found, BatchPlan)


def shapes_for(inputs: Mapping[str, TensorSpec], size: int) -> dict[str, list[int]]:
    """Return the shapes of a model's inputs for a batch."""
    return {name: [size, *(each or 0 for each in spec.shape[1:])] for name, spec in inputs.items()}


def batch_faults(
    model: ModelDescription, batch: BatchPlan | None, context: PlanContext
) -> list[Fault]:
    """Find what keeps a model from taking several frames at once, as far as its file tells.

    What only an inference can tell, ``batch_proof`` finds when the stage is opened.
    """
    if batch is None or not all(spec.is_static for spec in model.inputs.values()):
        return []
    faults = [*_unsuited(model)]
    if not faults and model.path:
        faults = [*_does_not_scale(model, batch.max_size, context)]
    place = f"{context.place}, batch"
    return [Fault(place, f"{cannot(model.name)}: {why}", MEND) for why in faults]


def cannot(model: str) -> str:
    """Begin the sentence that refuses a model."""
    return f"model {model!r} cannot be batched"


def _unsuited(model: ModelDescription) -> Iterator[str]:
    for name, spec in model.inputs.items():
        if not spec.shape or spec.shape[0] != 1:
            yield f"its input {name!r} is {spec}, whose first dimension is not a batch of 1"
    for name, spec in model.outputs.items():
        if not spec.is_static:
            yield f"its output {name!r} has a size that differs from frame to frame: {spec}"


def _does_not_scale(model: ModelDescription, size: int, context: PlanContext) -> Iterator[str]:
    shapes = {**model.shapes, **shapes_for(model.inputs, size)}
    try:
        batched = context.models.describe(model.path, shapes)
    except UserError as error:
        yield f"with {size} frames {error.faults[0].fault}"
        return
    yield from outputs_that_stay(model.outputs, batched.outputs, size)


def outputs_that_stay(
    single: Mapping[str, TensorSpec], batched: Mapping[str, TensorSpec], size: int
) -> Iterator[str]:
    """Yield why outputs do not have a part for each frame of a batch."""
    for name, spec in single.items():
        given = batched.get(name)
        wanted = _times(spec, size)
        if given is None or given.plain != wanted:
            yield f"with {size} frames its output {name!r} is {given}, not {wanted or 'batched'}"


def _times(spec: TensorSpec, size: int) -> TensorSpec | None:
    """Return what a batch has to give; None of a number without dimensions."""
    if not spec.shape:
        return None
    return TensorSpec(spec.dtype, ((spec.shape[0] or 0) * size, *spec.shape[1:]))
