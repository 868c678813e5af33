from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.errors import UserError
from edgert.models.describe import ImageInput, ModelDescription, PoseHead
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext
from edgert.stages.geometry import inverse, map_points
from edgert.stages.harness import opened
from edgert.stages.postprocess.pose import PoseOptions, PosePostprocess
from edgert.stages.preprocess.geometry import place
from edgert.tensor import FrameHeader, PortSpec, TensorSpec

NAMES = ("nose", "left_shoulder", "right_shoulder")
MOVENET = PoseHead("movenet", {"keypoints": "out"}, NAMES)
BLAZEPOSE = PoseHead("blazepose", {"keypoints": "out", "score": "flag"}, NAMES)


class Table:
    def __init__(self, head: PoseHead | None) -> None:
        self._head = head

    def describe(self, model: str, shapes: Any) -> ModelDescription:
        inputs = {"image": TensorSpec("u8", (1, 96, 192, 3))}
        image = ImageInput("image", "NHWC", "RGB", "letterbox-centre")
        return ModelDescription(
            "net", "net.tflite", "", "tflite", inputs, {}, image=image, pose=self._head
        )


def port(model: bool = True, **shapes: tuple[int, ...]) -> PortSpec:
    tensors = {name: TensorSpec("f32", shape) for name, shape in shapes.items()}
    return PortSpec("tensors", tensors, attributes={"model": "net"} if model else {})


def context(head: PoseHead | None = MOVENET) -> PlanContext:
    return PlanContext("person", "stage 'person'", ".", Table(head), {})


def movenet(points: Any, sure: Any) -> dict[str, np.ndarray]:
    """What MoveNet gives for points in pixels of its input, 192x96."""
    found = np.zeros((1, 1, len(NAMES), 3), np.float32)
    found[0, 0, :, :2] = np.array(points)[:, ::-1] / (96, 192)
    found[0, 0, :, 2] = sure
    return {"out": found}


def run(raw: dict[str, np.ndarray], header: FrameHeader, head: PoseHead = MOVENET, **settings: Any):
    shapes = {name: array.shape for name, array in raw.items()}
    with opened(PosePostprocess, settings, {"raw": port(**shapes)}, context(head)) as stage:
        found = stage.feed({"raw": raw}, header)["poses"]
        return found.tensors["keypoints"].copy(), found.tensors["scores"].copy()


@given(
    size=st.tuples(st.integers(16, 4000), st.integers(16, 4000)),
    points=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=3),
)
def test_points_are_where_they_are_in_the_source(size, points) -> None:
    """Whatever the letterbox: a point of the picture, seen by the model, comes back."""
    placed = place("letterbox-centre", size, (192, 96))
    wanted = np.array(points) * size
    seen = map_points(wanted, inverse(placed.to_source))
    header = FrameHeader(width=size[0], height=size[1], transform=placed.to_source)
    keypoints, _ = run(movenet(seen, 0.9), header)
    np.testing.assert_allclose(keypoints[0, :, :2], wanted, atol=2e-3 * max(size))


def test_the_score_of_a_pose_is_the_mean_of_its_points() -> None:
    keypoints, scores = run(movenet([(1, 2)] * 3, [0.1, 0.3, 0.8]), FrameHeader())
    assert scores == pytest.approx([0.4])
    assert keypoints[0, :, 2] == pytest.approx([0.1, 0.3, 0.8])


@pytest.mark.parametrize("sure", [[0.1] * 3, [np.nan] * 3, [-np.inf, 0, 0]])
def test_below_the_threshold_there_is_no_pose(sure) -> None:
    keypoints, scores = run(movenet([(1, 2)] * 3, sure), FrameHeader())
    assert (keypoints.shape, scores.shape) == ((0, 3, 3), (0,))


@pytest.mark.parametrize("wild", [np.nan, np.inf])
def test_a_point_that_is_no_number_is_no_pose(wild) -> None:
    keypoints, _ = run(movenet([(1, 2), (wild, 3), (4, 5)], 0.9), FrameHeader())
    assert len(keypoints) == 0


def test_blazepose_gives_pixels_and_a_score_of_its_own() -> None:
    out = np.zeros((1, 25), np.float32)  # two points more than have a name
    out.reshape(5, 5)[:3] = [(10, 20, 5, 0, 9), (30, 40, 5, 100, 9), (50, 60, 5, -100, 9)]
    raw = {"out": out, "flag": np.full((1, 1), 0.75, np.float32)}
    header = FrameHeader(transform=(2.0, 0.0, 1.0, 0.0, 2.0, 0.0))
    keypoints, scores = run(raw, header, BLAZEPOSE)
    assert scores.tolist() == [0.75]
    assert keypoints[0].tolist() == [
        pytest.approx([21, 40, 0.5]),
        pytest.approx([61, 80, 1]),
        pytest.approx([101, 120, 0], abs=1e-6),
    ]


@pytest.mark.parametrize(
    ("raw", "head", "settings", "said"),
    [
        (port(model=False, out=(1, 9)), None, {}, "nothing is known of how the model's outputs"),
        (port(out=(1, 9)), None, {"family": "movenet"}, "Give `keypoints:`."),
        (port(other=(1, 9)), MOVENET, {}, "what arrives has no tensor 'out'. It has: other"),
        (port(out=(1, 8)), MOVENET, {}, "output 'out' is f32[1,8], and 3 points of 3 numbers"),
        (port(out=(1, 14), flag=(1,)), BLAZEPOSE, {}, "at least 3 points of 5 numbers in f32"),
        (port(out=(1, 9)), MOVENET, {"family": "blazepose"}, "it is not known which output is"),
        (port(out=(1, 9)), MOVENET, {"keypoints": "none.txt"}, "none.txt: No such file"),
    ],
)
def test_what_does_not_fit_is_refused(raw, head, settings, said) -> None:
    options = read_as(PoseOptions, settings)
    with pytest.raises(UserError) as caught:
        PosePostprocess.plan(options, {"raw": raw}, context(head))
    assert said in str(caught.value)


def test_options_go_before_the_models_metadata() -> None:
    options = PoseOptions(family="movenet", keypoints=("a", "b"), size=(10, 20))
    planned = PosePostprocess.plan(options, {"raw": port(out=(1, 6))}, context(BLAZEPOSE))["poses"]
    assert planned.attributes["keypoints"] == ["a", "b"]
    assert planned.attributes["sizes"] == [(10, 20)]
    assert planned.tensors["keypoints"] == TensorSpec("f32", (1, 2, 3))
