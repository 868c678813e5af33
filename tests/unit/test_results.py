import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.results import DetectionResult, decode, detections_from, encode_line
from edgert.results.frame import rounded


def result(**changes: object) -> DetectionResult:
    boxes = np.array([[10.004, 20, 30.5, 40.126]], np.float32)
    scores = np.array([0.87654321], np.float32)
    found = detections_from(boxes, scores, np.array([0]), ["person"])
    known = {
        "stream": "camera",
        "frame": 3,
        "pts_s": 0.12,
        "latency_ms": 4.5,
        "width": 768,
        "height": 576,
        "detections": found,
    }
    return DetectionResult(**{**known, **changes})  # type: ignore[arg-type]


def test_a_line_is_what_the_schema_says() -> None:
    line = encode_line(result())
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "schema": "edgert.result/1",
        "task": "detection",
        "stream": "camera",
        "frame": 3,
        "pts_s": 0.12,
        "latency_ms": 4.5,
        "width": 768,
        "height": 576,
        "detections": [
            {"label": "person", "class": 0, "score": 0.8765, "box": [10.0, 20.0, 30.5, 40.13]}
        ],
    }


def test_nothing_found_is_an_empty_list() -> None:
    assert json.loads(encode_line(result(detections=[])))["detections"] == []


def test_a_line_is_read_back() -> None:
    assert decode(encode_line(result())) == result()


def test_landmarks_are_there_where_the_model_gives_them() -> None:
    points = np.array([[[1.006, 2], [3, 4.5]]])
    found = detections_from(
        np.array([[0, 0, 9, 9]]), np.array([0.5]), np.array([0]), ["face"], points
    )
    line = encode_line(result(detections=found))
    assert json.loads(line)["detections"][0]["landmarks"] == [[1.01, 2.0], [3.0, 4.5]]
    assert decode(line).detections[0].landmarks == [(1.01, 2.0), (3.0, 4.5)]


def test_a_class_without_a_label_is_named_by_its_number() -> None:
    boxes, scores = np.array([[0, 0, 1, 1]]), np.array([0.5])
    (found,) = detections_from(boxes, scores, np.array([7]), ["person"])
    assert found.label == "class 7"


@given(st.lists(st.floats(-65536, 65536, width=32)), st.sampled_from([2, 4]))
def test_numbers_are_rounded_as_one_by_one(numbers: list[float], digits: int) -> None:
    """All at once they are as ``round`` gives them, ties and all."""
    found = rounded(np.array(numbers, np.float32), digits)
    assert found == [round(number, digits) for number in numbers]


@pytest.mark.parametrize("shapes", [(2, 1, 2, 2), (2, 2, 1, 2), (2, 2, 2, 1), (1, 2, 2, 2)])
def test_nothing_is_cut_to_the_shortest(shapes: tuple[int, int, int, int]) -> None:
    boxes, scores, classes, points = shapes
    with pytest.raises(ValueError, match="zip"):
        detections_from(
            np.zeros((boxes, 4)),
            np.zeros(scores),
            np.zeros(classes, np.int32),
            ["person"],
            np.zeros((points, 3, 2)),
        )


@pytest.mark.parametrize("key", [b"edgert.result/1", b'"task":"detection"'])
def test_another_schema_or_task_is_refused(key: bytes) -> None:
    line = encode_line(result()).replace(key, key.replace(b"1", b"2").replace(b"detection", b"x"))
    with pytest.raises(msgspec.ValidationError):
        decode(line)
