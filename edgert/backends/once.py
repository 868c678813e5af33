"""One inference on memory of its own: to warm a session up, or to learn what it gives."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import numpy as np

from edgert.backends.base import Fit, Session, Targets
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array


def zeros_for(specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    """Return zeros for every tensor; every size must be known."""
    return {
        name: np.zeros(tuple(size or 0 for size in spec.shape), DTYPES[spec.dtype])
        for name, spec in specs.items()
    }


def infer_once(session: Session, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of one inference; one whose size is open gets the room it asks for.

    Raises:
        RunError: It failed.
    """
    results: dict[str, Array] = {}

    def room(name: str, shape: tuple[int, ...]) -> Array:
        results[name] = np.empty(shape, DTYPES[session.outputs[name].dtype])
        return results[name]

    def target(name: str, spec: TensorSpec) -> Array | Fit:
        if spec.is_static:
            return room(name, tuple(size or 0 for size in spec.shape))
        return lambda shape: room(name, shape)

    _run(session, inputs, {name: target(name, spec) for name, spec in session.outputs.items()})
    return results


def _run(session: Session, inputs: Mapping[str, Array], targets: Targets) -> None:
    ended = threading.Event()
    errors: list[BaseException | None] = []

    def done(error: BaseException | None) -> None:
        errors.append(error)
        ended.set()

    session.start(inputs, targets, done)
    ended.wait()
    if errors[0] is not None:
        raise errors[0]
