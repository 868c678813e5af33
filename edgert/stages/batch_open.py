"""Compiles a model for every batch size and proves each."""

from __future__ import annotations

from functools import partial

from edgert.backends.base import Session
from edgert.errors import ModelError
from edgert.stages.batch_plan import MEND, BatchPlan, cannot, shapes_for
from edgert.stages.batch_proof import flaws
from edgert.stages.batch_session import BatchSession
from edgert.stages.variants import Compile, Variants, warmed_up


def open_batches(
    compile_for: Compile,
    single: Session,
    batch: BatchPlan,
    model: str,
    place: str,
    variants: Variants,
) -> BatchSession:
    """Compile ``model`` for the sizes of ``batch`` beside ``single``, which is for one frame.

    Args:
        compile_for: Compiles for input shapes.
        single: The model for one frame; the caller's until all went well.
        batch: The sizes.
        model: How errors call it.
        place: With which errors begin.
        variants: Where it is noted what each size costs.

    Raises:
        ModelError: The model cannot be batched.
        DeviceError: The device refuses one of the sizes.
    """

    def prove(size: int, session: Session) -> None:
        found = flaws(single, session, size)
        if found:
            raise ModelError(f"{place}, batch", f"{cannot(model)}: {found[0]}", MEND)

    def make(size: int) -> Session:
        return warmed_up(compile_for(shapes_for(single.inputs, size)), partial(prove, size))

    by_size = {
        size: single if size == 1 else variants.add(f"batch of {size}", partial(make, size))
        for size in batch.sizes
    }
    session = BatchSession(single, by_size)
    if 1 not in by_size:
        single.close()
    return session
