"""Scores of a model become the best classes, whatever the model's numbers stand for."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.errors import FrameLostError, UserError
from edgert.models.describe import ClassificationHead, ModelDescription
from edgert.stages.base import PlanContext
from edgert.stages.harness import opened
from edgert.stages.postprocess.classification import (
    ClassificationOptions,
    ClassificationPostprocess,
    softmax,
)
from edgert.tensor import PortSpec, Quantisation, TensorSpec

LABELS = ("cat", "parrot", "uniform", "cup")
SCORES = ClassificationHead({"scores": "out"}, LABELS)
LOGITS = ClassificationHead({"scores": "out"}, LABELS, logits=True)
FLOATS = TensorSpec("f32", (1, 4))


class Table:
    def __init__(self, head: ClassificationHead | None) -> None:
        self._head = head

    def describe(self, model: str, shapes: Any) -> ModelDescription:
        return ModelDescription("net", "", "", "onnx", {}, {}, classification=self._head)


def context(head: ClassificationHead | None) -> PlanContext:
    return PlanContext("classes", "stage 'classes'", ".", Table(head), {})


def port(spec: TensorSpec) -> PortSpec:
    return PortSpec("tensors", {"out": spec}, attributes={"model": "net"})


def found_by(
    head: ClassificationHead, raw: np.ndarray, spec: TensorSpec = FLOATS, **settings: Any
) -> list[tuple[int, float]]:
    with opened(ClassificationPostprocess, settings, {"raw": port(spec)}, context(head)) as stage:
        found = stage.feed({"raw": {"out": raw}})["classification"].tensors
        return list(zip(found["classes"].tolist(), found["scores"].tolist(), strict=True))


def refusal(head: ClassificationHead | None, spec: TensorSpec, **settings: Any) -> str:
    options = ClassificationOptions(**settings)
    with pytest.raises(UserError) as caught:
        ClassificationPostprocess.plan(options, {"raw": port(spec)}, context(head))
    return str(caught.value)


def floats(*values: float) -> np.ndarray:
    return np.array([values], np.float32)


def test_scores_are_told_best_first() -> None:
    found = found_by(SCORES, floats(0.125, 0.5, 0.25, 0.005))
    assert found == [(1, 0.5), (2, 0.25), (0, 0.125)]


def test_as_many_as_are_asked_for_above_the_threshold() -> None:
    scores = floats(0.125, 0.5, 0.25, 0.0625)
    assert found_by(SCORES, scores, top=2) == [(1, 0.5), (2, 0.25)]
    assert found_by(SCORES, scores, threshold=0.25) == [(1, 0.5), (2, 0.25)]
    assert found_by(SCORES, scores, threshold=0.75) == []


def test_of_equal_scores_the_first_class_goes_first() -> None:
    assert [class_id for class_id, _ in found_by(SCORES, floats(0.25, 0.25, 0.25, 0.25))] == [
        0,
        1,
        2,
        3,
    ]


def test_logits_become_probabilities() -> None:
    found = found_by(LOGITS, floats(1000, 1000 + np.log(3), -1e30, 0))
    assert found == [(1, pytest.approx(0.75, abs=1e-4)), (0, pytest.approx(0.25, abs=1e-4))]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(-1e3, 1e3))
def test_softmax_adds_up_to_one_and_knows_differences_alone(values, shift) -> None:
    chances = softmax(np.array(values))
    assert chances.sum() == pytest.approx(1)
    assert (chances >= 0).all()
    assert softmax(np.array(values) + shift) == pytest.approx(chances, abs=1e-6)
    order = np.argsort(values, kind="stable")
    assert (np.diff(chances[order]) >= 0).all()


@pytest.mark.parametrize(
    ("dtype", "theirs", "zero_point"), [("u8", np.uint8, 0), ("i8", np.int8, -128)]
)
def test_whole_numbers_are_what_the_model_says(dtype: str, theirs: Any, zero_point: int) -> None:
    spec = TensorSpec(dtype, (1, 4), Quantisation(1 / 256, zero_point))
    raw = (np.array([[32, 192, 0, 1]]) + zero_point).astype(theirs)
    assert found_by(SCORES, raw, spec) == [(1, 0.75), (0, 0.125)]


def test_quantised_logits_become_probabilities() -> None:
    spec = TensorSpec("u8", (1, 4), Quantisation(np.log(3) / 10, 100))
    found = found_by(LOGITS, np.array([[110, 100, 0, 0]], np.uint8), spec)
    assert found == [(0, pytest.approx(0.75, abs=1e-4)), (1, pytest.approx(0.25, abs=1e-4))]


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("head", [SCORES, LOGITS])
def test_a_frame_without_numbers_is_lost(head: ClassificationHead, wild: float) -> None:
    with pytest.raises(FrameLostError, match="no numbers"):
        found_by(head, floats(0.5, wild, 0, 0))


def test_logits_taken_for_scores_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with opened(ClassificationPostprocess, {}, {"raw": port(FLOATS)}, context(SCORES)) as stage:
        for _ in range(2):
            found = stage.feed({"raw": {"out": floats(12.5, -3, 0.5, 0)}})["classification"]
            assert found.tensors["scores"].tolist() == [1, 0.5]
            del found
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "stage 'classes': the model gives scores from -3 to 12.5, which are cut to 0 to 1: are "
        "they logits? Then set `logits: true`"
    )


@pytest.mark.parametrize("shape", [(4,), (1, 4), (1, 1, 1, 4), (1, 4, 1, 1)])
def test_the_classes_may_lie_in_any_dimension(shape: tuple[int, ...]) -> None:
    scores = floats(0.125, 0.5, 0.25, 0).reshape(shape)
    assert found_by(SCORES, scores, TensorSpec("f32", shape), top=1) == [(1, 0.5)]


def test_the_port_says_how_classes_are_found() -> None:
    options = ClassificationOptions(top=3)
    ports = ClassificationPostprocess.plan(options, {"raw": port(FLOATS)}, context(SCORES))
    found = ports["classification"]
    assert found.tensors == {"scores": TensorSpec("f32", (3,)), "classes": TensorSpec("i32", (3,))}
    assert found.attributes == {"labels": list(LABELS), "tensor": "out", "logits": False}


def test_a_model_without_metadata_asks_for_what_is_missing() -> None:
    assert "Give `labels:`, `logits:`" in refusal(None, FLOATS)
    assert "Give `logits:`." in refusal(None, FLOATS, labels=LABELS)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (TensorSpec("f32", (1, 5)), "output 'out' is f32[1,5], and there are 4 labels"),
        (TensorSpec("f32", (2, 4)), "a score for each class of one picture is needed"),
        (TensorSpec("i64", (1, 4)), "scores are f16, f32, f64, u8, i8, u16, i16"),
        (
            TensorSpec("u8", (1, 4)),
            "output 'out' is u8[1,4], whole numbers of which it is not known what they stand for. "
            "Give the right `tensors:` or `labels:`; the scale of a TFLite model is told by pip "
            "install 'edgert[tflite]'",
        ),
    ],
)
def test_outputs_that_are_no_scores(spec: TensorSpec, expected: str) -> None:
    assert expected in refusal(SCORES, spec)
