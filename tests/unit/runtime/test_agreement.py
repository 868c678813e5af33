"""How alike outputs are: as the floats they stand for, the least alike counts."""

from __future__ import annotations

import numpy as np
import pytest

from edgert.results.likeness import Likeness
from edgert.runtime.trials.agreement import OutputAgreement
from edgert.stages.harness import PrivateSlot
from edgert.tensor import FrameHeader, PortSpec, Quantisation, TensorSpec
from edgert.transport.address import Array
from edgert.transport.slot import Sample

PORT = PortSpec(
    "tensors",
    {"y": TensorSpec("f32", (4, 2)), "q": TensorSpec("u8", (4, 2), Quantisation(0.5, 128))},
)


def frame(y: Array, q: Array) -> dict[str, Sample]:
    tensors = {"y": np.asarray(y, np.float32), "q": np.asarray(q, np.uint8)}
    return {"outputs": PrivateSlot(PORT).fill(tensors, FrameHeader())}


@pytest.mark.parametrize(
    ("y", "q", "alike"),
    [
        ([[1, 2]], [[130, 126]], 1.0),
        ([[1.5, 3]], [[130, 126]], 12 / 13),
        ([[1, 2]], [[126, 130]], 0.0),  # 1, -1 and -1, 1: as bytes they are nearly the same
        ([[1, 2], [0, 0]], [[130, 126], [128, 128]], 0.0),
    ],
)
def test_the_least_alike_counts(y: Array, q: Array, alike: float) -> None:
    agreement = OutputAgreement({"outputs": PORT})
    before = frame([[1, 2]], [[130, 126]])
    assert agreement.compare(before, frame(y, q)) == Likeness(pytest.approx(alike), 1.0)


def test_frames_without_items_say_nothing() -> None:
    nothing = np.zeros((0, 2))
    agreement = OutputAgreement({"outputs": PORT})
    assert agreement.compare(frame(nothing, nothing), frame(nothing, nothing)) == Likeness(0, 0)
