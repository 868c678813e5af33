"""Proves that a model gives each frame of a batch what it would give the frame alone.

A model may take a batch and mix its frames up, by a reshape with fixed numbers or by a mean over
everything: its shapes look right. So different inputs are inferred one by one and together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from edgert.backends.base import Session
from edgert.backends.once import infer_once
from edgert.stages.batch_plan import outputs_that_stay
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array

# Of the span of an output: kernels of other batch sizes round differently, a frame that got
# another one's result is off by far more, and in most of its elements.
TOLERANCE = {"f32": 1e-3, "f64": 1e-3}
TOLERANCE_OF_FEWER_BITS = 3e-2
# Where two values are nearly equal, rounding turns the order of results around.
SHARE = 0.99


def flaws(single: Session, batched: Session, size: int) -> list[str]:
    """Return why a session of batches cannot stand for one of single frames; nothing if it can."""
    found = [*outputs_that_stay(single.outputs, batched.outputs, size)]
    # A device that replays one result whatever it is given teaches nothing.
    if found or (single.device.emulated and "replayed" in single.device.precision):
        return found
    return [*_differences(single, batched, size)]


def _differences(single: Session, batched: Session, size: int) -> Iterator[str]:
    inputs = [_example(single.inputs, seed) for seed in range(size)]
    alone = [infer_once(single, each) for each in inputs]
    together = infer_once(
        batched, {name: np.concatenate([each[name] for each in inputs]) for name in single.inputs}
    )
    tolerance = TOLERANCE.get(single.device.precision, TOLERANCE_OF_FEWER_BITS)
    for name, whole in together.items():
        parts = np.split(whole, size)
        for item, (part, results) in enumerate(zip(parts, alone, strict=True)):
            if not is_same(part, results[name], tolerance):
                yield (
                    f"in a batch of {size}, frame {item} gets another {name!r} than alone: "
                    "the model mixes frames"
                )
                break


def is_same(one: Array, other: Array, tolerance: float) -> bool:
    """Whether two results are equal but for rounding."""
    if one.dtype.kind not in "fc":
        equal = np.abs(one.astype(np.float64) - other.astype(np.float64)) <= 1
    else:
        span = float(np.ptp(other)) if other.size else 0.0
        scale = max(span, float(np.abs(other).max(initial=0.0)) * 1e-3, 1e-6)
        equal = np.isclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    return bool(equal.mean() >= SHARE) if equal.size else True


def _example(specs: Mapping[str, TensorSpec], seed: int) -> dict[str, Array]:
    """Return noise that is another for each seed, and the same every time."""
    noise = np.random.default_rng(seed)
    return {name: _noise(noise, spec) for name, spec in specs.items()}


def _noise(noise: np.random.Generator, spec: TensorSpec) -> Array:
    shape = tuple(size or 0 for size in spec.shape)
    if spec.dtype in ("u8", "f16", "f32", "f64"):
        return noise.integers(0, 256, shape).astype(DTYPES[spec.dtype])
    return noise.integers(0, 2, shape).astype(DTYPES[spec.dtype])  # often an index, or a switch
