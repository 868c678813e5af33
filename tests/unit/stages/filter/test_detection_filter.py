from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from edgert.errors import UserError
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext
from edgert.stages.filter.detections import (
    DetectionFilter,
    DetectionFilterOptions,
    inside,
    polygon_of,
)
from edgert.stages.harness import opened
from edgert.tensor import FrameHeader, PortSpec, TensorSpec

LABELS = ["person", "car", "dog"]
PORT = PortSpec(
    "detections",
    {
        "boxes": TensorSpec("f32", (20, 4)),
        "scores": TensorSpec("f32", (20,)),
        "classes": TensorSpec("i32", (20,)),
    },
    attributes={"labels": LABELS},
)
HEADER = FrameHeader(width=200, height=100, sequence=7)
BOXES = [(0, 0, 10, 10), (90, 40, 110, 60), (100, 0, 200, 100), (150, 70, 160, 75)]
SCORES = [0.9, 0.5, 0.8, 0.6]
CLASSES = [0, 1, 0, 2]


class NoModels:
    """A filter asks nothing about models."""

    def describe(self, model: str, shapes: Mapping[str, Any]) -> Any:
        raise AssertionError(model)


CONTEXT = PlanContext("near", "stage 'near'", ".", NoModels(), {})


def passing(**settings: Any) -> list[int]:
    """Return which of ``BOXES`` pass, after checking that each one passes whole."""
    frame = {
        "boxes": np.array(BOXES, np.float32),
        "scores": np.array(SCORES, np.float32),
        "classes": np.array(CLASSES, np.int32),
    }
    with opened(DetectionFilter, settings, {"detections": PORT}, CONTEXT) as run:
        sample = run.feed({"detections": frame}, HEADER)["detections"]
        assert sample.header == HEADER
        kept = [BOXES.index(tuple(box)) for box in sample.tensors["boxes"].tolist()]
        for name, array in frame.items():
            assert sample.tensors[name].tolist() == array[kept].tolist()
    return kept


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [0, 1, 2, 3]),
        ({"labels": ["person"]}, [0, 2]),
        ({"labels": ["dog", "car"]}, [1, 3]),
        ({"min_score": 0.6}, [0, 2, 3]),
        ({"min_area_px": 100}, [0, 1, 2]),
        ({"max_area_px": 100}, [0, 3]),
        ({"min_area_px": 60, "max_area_px": 400}, [0, 1]),
        ({"region": [0, 0, 0.4, 0.4]}, [0]),
        ({"region": [0.5, 0, 1, 1]}, [1, 2, 3]),
        ({"region": [0.5, 0.0, 1, 0.6]}, [1, 2]),
        ({"region_px": [100, 0, 200, 60]}, [1, 2]),
        ({"region_px": [100, 0, 200, 60], "anchor": "bottom-centre"}, []),
        ({"region_px": [90, 50, 200, 80], "anchor": "bottom-centre"}, [1, 3]),
        ({"region": [[0, 0], [1, 0], [0, 1]]}, [0]),
        ({"region_px": [[0, 0], [200, 0], [200, 100]]}, [1, 2, 3]),
        ({"labels": ["person"], "min_score": 0.85, "min_area_px": 100}, [0]),
    ],
)
def test_what_passes(settings, expected) -> None:
    assert passing(**settings) == expected


def test_nothing_of_nothing() -> None:
    empty = {
        "boxes": np.zeros((0, 4), np.float32),
        "scores": np.zeros(0, np.float32),
        "classes": np.zeros(0, np.int32),
    }
    settings = {"labels": ["car"], "region": [0, 0, 0.5, 0.5], "max_area_px": 5}
    with opened(DetectionFilter, settings, {"detections": PORT}, CONTEXT) as run:
        sample = run.feed({"detections": empty}, HEADER)["detections"]
        assert sample.tensors["boxes"].shape == (0, 4)


def test_labels_pass_on_to_the_readers() -> None:
    options = DetectionFilterOptions(labels=("car",))
    port = DetectionFilter.plan(options, {"detections": PORT}, CONTEXT)["detections"]
    assert port == PORT


def refusal(port: PortSpec, **settings: Any) -> str:
    options = read_as(DetectionFilterOptions, settings)
    with pytest.raises(UserError) as caught:
        DetectionFilter.plan(options, {"detections": port}, CONTEXT)
    return str(caught.value)


def test_every_unknown_label_is_told_with_its_near_miss() -> None:
    assert refusal(PORT, labels=["persn", "car", "zebra"]).splitlines() == [
        "stage 'near', labels: what arrives has no label 'persn'. "
        "Did you mean 'person'? Its labels: person, car, dog.",
        "stage 'near', labels: what arrives has no label 'zebra'. Its labels: person, car, dog.",
    ]


def test_other_detections_are_refused() -> None:
    port = PortSpec("detections", {"boxes": TensorSpec("f32", (5, 4))})
    assert "have no scores, classes" in refusal(port)


@pytest.mark.parametrize(
    "settings",
    [
        {"labels": []},
        {"min_score": 2},
        {"region": [0, 0, 1, 1], "region_px": [0, 0, 9, 9]},
        {"region": [0, 0, 200, 100]},
        {"region": [0, 0, 0, 1]},
        {"region_px": [[0, 0], [1, 1]]},
        {"region_px": [[0, 0], [1, 0], [2, 0]]},
        {"region_px": [0, 0, float("nan"), 1]},
        {"min_area_px": 10, "max_area_px": 5},
        {"anchor": "top"},
        {"label": ["person"]},
    ],
)
def test_options_that_cannot_be(settings) -> None:
    with pytest.raises(ValidationError):
        read_as(DetectionFilterOptions, settings)


points = st.tuples(st.floats(-5, 15), st.floats(-5, 15))


@given(st.lists(points, min_size=1, max_size=8))
def test_a_rectangle_is_a_polygon_like_any_other(found) -> None:
    x, y = np.array(found).T
    expected = (x >= 0) & (x < 10) & (y >= 2) & (y < 8)
    assert inside(x, y, polygon_of((0.0, 2.0, 10.0, 8.0))).tolist() == expected.tolist()


@given(points)
def test_regions_side_by_side_share_no_point(point) -> None:
    """A point inside a square lies in exactly one of the two triangles it is cut into."""
    x, y = np.array([point]).T
    square = inside(x, y, polygon_of((0.0, 0.0, 10.0, 10.0)))[0]
    upper = inside(x, y, polygon_of(((0.0, 0.0), (10.0, 0.0), (10.0, 10.0))))[0]
    lower = inside(x, y, polygon_of(((0.0, 0.0), (10.0, 10.0), (0.0, 10.0))))[0]
    assert int(upper) + int(lower) == int(square)


def test_landmarks_stay_with_their_detection() -> None:
    tensors = {**PORT.tensors, "landmarks": TensorSpec("f32", (20, 2, 2))}
    port = PortSpec("detections", tensors, attributes=PORT.attributes)
    points = np.arange(16, dtype=np.float32).reshape(4, 2, 2)
    frame = {
        "boxes": np.array(BOXES, np.float32),
        "scores": np.array(SCORES, np.float32),
        "classes": np.array(CLASSES, np.int32),
        "landmarks": points,
    }
    with opened(DetectionFilter, {"min_score": 0.7}, {"detections": port}, CONTEXT) as run:
        sample = run.feed({"detections": frame}, HEADER)["detections"]
        assert sample.tensors["landmarks"].tolist() == points[[0, 2]].tolist()
