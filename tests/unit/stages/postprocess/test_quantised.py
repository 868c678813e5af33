"""Quantised outputs are read as the floats that they stand for."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.models.describe import DetectionHead
from edgert.stages.harness import opened
from edgert.stages.postprocess.detection import DetectionPostprocess
from edgert.stages.postprocess.quantised import Dequantiser
from edgert.tensor import FrameHeader, PortSpec, Quantisation, TensorSpec

YOLO = DetectionHead(
    "yolo", {"predictions": "out"}, labels=("person", "car", "dog"), normalised=True
)
HEADER = FrameHeader(width=64, height=32)
# 4 numbers of the box, objectness, 3 classes: fractions, in 256ths.
ROWS = [[128, 128, 64, 64, 255, 0, 240, 0], [32, 64, 32, 64, 200, 10, 0, 230]]
STEP = 1 / 256


def found_by(context, raw: np.ndarray, spec: TensorSpec) -> list[list[float]]:
    inputs = {"raw": PortSpec("tensors", {"out": spec}, attributes={"model": "net"})}
    with opened(DetectionPostprocess, {"threshold": 0.5}, inputs, context(YOLO)) as run:
        found = run.feed({"raw": {"out": raw}}, HEADER)["detections"].tensors
        return np.column_stack([found["boxes"], found["scores"], found["classes"]]).tolist()


@pytest.mark.parametrize(
    ("dtype", "theirs", "zero_point"), [("u8", np.uint8, 0), ("i8", np.int8, -128)]
)
def test_quantised_boxes_are_those_of_the_floats(context, dtype, theirs, zero_point) -> None:
    whole = np.zeros((1, 20, 8), np.int64)
    whole[0, : len(ROWS)] = ROWS
    floats = (whole * STEP).astype(np.float32)
    expected = found_by(context, floats, TensorSpec("f32", floats.shape))
    spec = TensorSpec(dtype, whole.shape, Quantisation(STEP, zero_point))
    assert found_by(context, (whole + zero_point).astype(theirs), spec) == expected
    assert [row[-1] for row in expected] == [1, 2]


def test_one_scale_for_boxes_in_pixels_and_scores_is_told(context, caplog) -> None:
    spec = TensorSpec("u8", (1, 20, 8), Quantisation(2.5, 0))
    assert found_by(context, np.zeros((1, 20, 8), np.uint8), spec) == []
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "stage 'people': output 'out' is quantised in steps of 2.5, too coarse for scores from 0 "
        "to 1: export the model with scores in an output of their own"
    )


@given(
    st.sampled_from([("u8", 0, 255), ("i8", -128, 127), ("i16", -32768, 32767)]),
    st.floats(1e-6, 10),
    st.lists(st.floats(0, 1), min_size=1, max_size=9),
    st.data(),
)
def test_floats_are_exact_but_for_the_rounding_of_f32(kind, scale, values, data) -> None:
    dtype, low, high = kind
    zero_point = data.draw(st.integers(low, high))
    fractions = np.array(values)
    whole = np.rint(low + fractions * (high - low))
    exact = (whole - zero_point) * scale
    spec = TensorSpec(dtype, whole.shape, Quantisation(scale, zero_point))
    given_floats = {"kept": np.ones(2, np.float32)}
    types = {"u8": np.uint8, "i8": np.int8, "i16": np.int16}
    dequantiser = Dequantiser({"out": spec, "kept": TensorSpec("f32", (2,))})
    found = dequantiser.floats({"out": whole.astype(types[dtype]), **given_floats})
    assert found["out"].dtype == np.float32
    assert found["out"] == pytest.approx(exact, rel=1e-6, abs=0)
    assert found["kept"] is given_floats["kept"]


def test_memory_is_used_again_and_fits_smaller_results() -> None:
    spec = TensorSpec("u8", (4, 2), Quantisation(0.5, 0))
    dequantiser = Dequantiser({"out": spec})
    first = dequantiser.floats({"out": np.full((4, 2), 2, np.uint8)})["out"]
    second = dequantiser.floats({"out": np.full((3, 2), 4, np.uint8)})["out"]
    assert second.tolist() == [[2, 2]] * 3
    assert np.shares_memory(first, second)
