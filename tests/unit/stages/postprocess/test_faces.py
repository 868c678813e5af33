"""CenterFace and BlazeFace: boxes and landmarks from heads that are made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.errors import UserError
from edgert.models.describe import DetectionHead
from edgert.stages.postprocess.blazeface import anchors
from edgert.stages.postprocess.centerface import CenterFaceDecoder
from edgert.stages.postprocess.detection import DetectionOptions, DetectionPostprocess
from edgert.stages.postprocess.fit import LANDMARKS
from edgert.stages.postprocess.head import Head
from edgert.tensor import FrameHeader

CENTERFACE = DetectionHead(
    "centerface",
    {"heatmap": "h", "scale": "s", "offset": "o", "landmarks": "l"},
    labels=("face",),
)
YUNET = DetectionHead("yunet", {}, labels=("face",))
BLAZEFACE = DetectionHead("blazeface", {"boxes": "b", "scores": "s"}, labels=("face",))
# The model sees 64x32; the frame is 640x320, of which the picture lacks the left 10 pixels.
CENTERFACE_SHAPES = {
    "h": (1, 1, 8, 16),
    "s": (1, 2, 8, 16),
    "o": (1, 2, 8, 16),
    "l": (1, 10, 8, 16),
}
HEADER = FrameHeader(width=640, height=320, transform=(10.0, 0.0, -10.0, 0.0, 10.0, 0.0))
WHOLE = FrameHeader(width=128, height=128)
CELLS = 16 * 16 + 3 * 8 * 8
BLAZEFACE_SHAPES = {"b": (1, 2 * CELLS, 16), "s": (1, 2 * CELLS, 1)}
YUNET_SHAPES = {
    f"{part}_{stride}": (1, (64 // stride) * (32 // stride), numbers)
    for part, numbers in {"cls": 1, "obj": 1, "bbox": 4, "kps": 10}.items()
    for stride in (8, 16, 32)
}
FAR = -20.0  # the score of an anchor that sees nothing


def empty_centerface() -> dict[str, np.ndarray]:
    return {name: np.zeros(shape, np.float32) for name, shape in CENTERFACE_SHAPES.items()}


def empty_blazeface() -> dict[str, np.ndarray]:
    tensors = {name: np.zeros(shape, np.float32) for name, shape in BLAZEFACE_SHAPES.items()}
    tensors["s"][:] = FAR
    return tensors


def found_by(run, tensors, header):
    found = run.feed({"raw": tensors}, header)["detections"].tensors
    return {name: found[name].copy() for name in ("boxes", "scores", "classes", "landmarks")}


def test_centerface(postprocess) -> None:
    tensors = empty_centerface()
    at = (2, 5)  # row, column
    tensors["h"][0, 0][at] = 0.75
    tensors["s"][0][:, *at] = np.log(2), np.log(4)  # height 8, width 16
    tensors["o"][0][:, *at] = 0.25, -0.5  # y, x
    tensors["l"][0][:2, *at] = 0.5, 0.25  # y, x
    tensors["h"][0, 0, 7, 7] = 0.49
    with postprocess(CENTERFACE, CENTERFACE_SHAPES) as run:
        found = found_by(run, tensors, HEADER)
    # Centre (20, 11) of the input, so 12 to 28 and 7 to 15.
    assert found["boxes"] == pytest.approx(np.array([[110, 70, 270, 150]]), abs=1e-3)
    assert found["scores"].tolist() == [0.75]
    assert found["classes"].tolist() == [0]
    assert found["landmarks"].shape == (1, 5, 2)
    assert found["landmarks"][0, 0] == pytest.approx([150, 110], abs=1e-3)
    assert found["landmarks"][0, 1] == pytest.approx([110, 70], abs=1e-3)


def test_neighbouring_cells_of_one_face_are_one_detection(postprocess) -> None:
    tensors = empty_centerface()
    tensors["s"][:] = np.log(4)
    tensors["h"][0, 0, 3, 7:10] = 0.6, 0.9, 0.7
    with postprocess(CENTERFACE, CENTERFACE_SHAPES) as run:
        found = found_by(run, tensors, HEADER)
    assert found["scores"] == pytest.approx([0.9])
    assert found["landmarks"].shape == (1, 5, 2)


centres = st.tuples(st.floats(2, 62), st.floats(2, 30))
sizes = st.tuples(st.floats(0.5, 60), st.floats(0.5, 30))


@given(
    centres, sizes, st.lists(st.tuples(st.floats(-1, 2), st.floats(-1, 2)), min_size=5, max_size=5)
)
def test_centerface_gives_back_what_was_encoded(centre, size, points) -> None:
    """A face written into the cell of its centre comes out where it was."""
    tensors = empty_centerface()
    column, row = (int(value // 4) for value in centre)
    tensors["h"][0, 0, row, column] = 1
    tensors["s"][0, :, row, column] = np.log(np.array(size[::-1]) / 4)
    offset = np.array(centre) / 4 - (column + 0.5, row + 0.5)
    tensors["o"][0, :, row, column] = offset[::-1]
    tensors["l"][0, :, row, column] = np.array(points)[:, ::-1].ravel()
    head = Head("centerface", CENTERFACE.tensors, 64, 32, 1)
    found = CenterFaceDecoder(head, 0.5).decode(tensors)
    corner = np.array(centre) - np.array(size) / 2
    box = [*corner, *(corner + size)]
    assert found.boxes[0] == pytest.approx(np.array(box), abs=1e-3)
    assert found.landmarks is not None
    assert found.landmarks[0] == pytest.approx(corner + np.array(points) * size, abs=1e-3)


def test_the_anchors_of_the_short_range_model() -> None:
    found = anchors(128, 128, (8, 16, 16, 16))
    assert len(found) == CELLS
    assert found[0].tolist() == [4, 4]
    assert found[17].tolist() == [12, 12]  # second row, second column
    assert found[255].tolist() == [124, 124]
    # Three grids of one stride lie cell by cell, not one after another.
    assert found[256:260].tolist() == [[8, 8], [8, 8], [8, 8], [24, 8]]
    assert found[-1].tolist() == [120, 120]


def blaze(tensors, anchor: int, score: float, box, *points) -> None:
    """Write a box (relative centre, size) and points of an anchor."""
    tensors["s"][0, anchor, 0] = np.log(score / (1 - score))
    tensors["b"][0, anchor, :4] = box
    for n, point in enumerate(points):
        tensors["b"][0, anchor, 4 + 2 * n : 6 + 2 * n] = point


def test_blazeface(postprocess) -> None:
    tensors = empty_blazeface()
    blaze(tensors, 2 * 17, 0.8, (1, 2, 20, 10), (3, -4))  # anchor (12, 12)
    blaze(tensors, 2 * CELLS - 1, 0.9, (-20, -20, 40, 40))  # anchor (120, 120)
    blaze(tensors, 0, 0.49, (0, 0, 100, 100))
    with postprocess(BLAZEFACE, BLAZEFACE_SHAPES, size=(128, 128)) as run:
        found = found_by(run, tensors, WHOLE)
    assert found["boxes"] == pytest.approx(np.array([[80, 80, 120, 120], [3, 9, 23, 19]]), abs=1e-3)
    assert found["scores"] == pytest.approx([0.9, 0.8])
    assert found["landmarks"].shape == (2, 6, 2)
    assert found["landmarks"][1, 0] == pytest.approx([15, 8])


def test_overlapping_boxes_of_blazeface_are_blended_by_their_scores(postprocess) -> None:
    tensors = empty_blazeface()
    blaze(tensors, 34, 0.75, (0, 0, 20, 20), (0, 0))
    blaze(tensors, 35, 0.5, (5, 0, 20, 20), (10, 0))
    with postprocess(BLAZEFACE, BLAZEFACE_SHAPES, size=(128, 128)) as run:
        found = found_by(run, tensors, WHOLE)
    assert found["scores"] == pytest.approx([0.75])
    assert found["boxes"] == pytest.approx(np.array([[4, 2, 24, 22]]), abs=1e-3)
    assert found["landmarks"][0, 0] == pytest.approx([16, 12], abs=1e-3)


def test_a_model_of_one_anchor_a_cell(postprocess) -> None:
    head = DetectionHead("blazeface", BLAZEFACE.tensors, (4,), ("face",))
    shapes = {"b": (1, 32 * 32, 16), "s": (1, 32 * 32, 1)}
    tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    tensors["s"][:] = FAR
    blaze(tensors, 33, 0.9, (0, 0, 8, 8))  # anchor (6, 6)
    with postprocess(head, shapes, size=(128, 128)) as run:
        found = found_by(run, tensors, WHOLE)
    assert found["boxes"] == pytest.approx(np.array([[2, 2, 10, 10]]))


def empty_yunet() -> dict[str, np.ndarray]:
    return {name: np.zeros(shape, np.float32) for name, shape in YUNET_SHAPES.items()}


def test_yunet(postprocess) -> None:
    tensors = empty_yunet()
    at = 1 * 4 + 2  # stride 16: row 1, column 2
    tensors["cls_16"][0, at], tensors["obj_16"][0, at] = 1.5, 0.5625
    tensors["bbox_16"][0, at] = 0.25, 0.0, np.log(2), np.log(1)
    tensors["kps_16"][0, at, :4] = 0.5, 0.25, 0, -1
    tensors["cls_8"][0, 0] = tensors["obj_8"][0, 0] = 0.49
    tensors["cls_32"][0, 1] = 1  # no objectness
    with postprocess(YUNET, YUNET_SHAPES) as run:
        found = found_by(run, tensors, HEADER)
    # Centre (36, 16) of the input, 32 wide and 16 high.
    assert found["boxes"] == pytest.approx(np.array([[190, 80, 510, 240]]), abs=1e-3)
    assert found["scores"].tolist() == [0.75]
    assert found["landmarks"][0, :2] == pytest.approx(np.array([[390, 200], [310, 0]]), abs=1e-3)


@pytest.mark.parametrize(
    ("head", "empty", "size"),
    [
        (CENTERFACE, empty_centerface, (64, 32)),
        (BLAZEFACE, empty_blazeface, (128, 128)),
        (YUNET, empty_yunet, (64, 32)),
    ],
)
def test_no_face(postprocess, head, empty, size) -> None:
    tensors = empty()
    shapes = {name: array.shape for name, array in tensors.items()}
    with postprocess(head, shapes, size=size) as run:
        found = found_by(run, tensors, WHOLE)
    assert found["boxes"].shape == (0, 4)
    assert found["landmarks"].shape == (0, len(LANDMARKS[head.family]), 2)


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_wild_numbers_give_no_wild_detections(postprocess, wild) -> None:
    for head, shapes, size in (
        (CENTERFACE, CENTERFACE_SHAPES, (64, 32)),
        (BLAZEFACE, BLAZEFACE_SHAPES, (128, 128)),
        (YUNET, YUNET_SHAPES, (64, 32)),
    ):
        tensors = {name: np.full(shape, wild, np.float32) for name, shape in shapes.items()}
        header = FrameHeader(width=size[0], height=size[1])
        with postprocess(head, shapes, size=size) as run:
            found = found_by(run, tensors, header)
        assert all(np.isfinite(array).all() for array in found.values())
        assert len(found["boxes"]) == len(found["landmarks"]) <= 100


def test_a_face_without_a_landmark_that_is_a_number_is_left_out(postprocess) -> None:
    tensors = empty_blazeface()
    blaze(tensors, 34, 0.75, (0, 0, 20, 20), (np.nan, 0))
    with postprocess(BLAZEFACE, BLAZEFACE_SHAPES, size=(128, 128)) as run:
        assert len(found_by(run, tensors, WHOLE)["boxes"]) == 0


@pytest.mark.parametrize(
    ("head", "shapes", "size", "expected"),
    [
        (
            CENTERFACE,
            CENTERFACE_SHAPES | {"h": (1, 1, 16, 8), "l": (1, 8, 8, 16)},
            (64, 32),
            (
                "output 'h' is f32[1,1,16,8]; centerface with an input of 64x32 gives "
                "[1, 1, 8, 16] as heatmap",
                "output 'l' is f32[1,8,8,16]; centerface with an input of 64x32 gives "
                "[1, 10, 8, 16] as landmarks",
            ),
        ),
        (
            YUNET,
            YUNET_SHAPES | {"kps_32": (1, 2, 8)},
            (64, 32),
            (
                "output 'kps_32' is f32[1,2,8]; yunet with an input of 64x32 gives [1, 2, 10] as "
                "kps_32",
            ),
        ),
        (
            BLAZEFACE,
            BLAZEFACE_SHAPES | {"b": (1, 895, 16)},
            (128, 128),
            (
                "output 'b' is f32[1,895,16]; blazeface with an input of 128x128 gives "
                "[1, 896, 16] as boxes",
            ),
        ),
    ],
)
def test_outputs_that_do_not_fit(context, raw, head, shapes, size, expected) -> None:
    options = DetectionOptions()
    with pytest.raises(UserError) as caught:
        DetectionPostprocess.plan(options, {"raw": raw(shapes)}, context(head, size))
    assert tuple(fault.fault for fault in caught.value.faults) == expected


def test_the_port_names_the_landmarks(context, raw) -> None:
    options = DetectionOptions(max_detections=7)
    ports = DetectionPostprocess.plan(
        options, {"raw": raw(BLAZEFACE_SHAPES)}, context(BLAZEFACE, (128, 128))
    )
    port = ports["detections"]
    assert port.tensors["landmarks"].shape == (7, 6, 2)
    assert port.attributes["landmarks"][:2] == ["right_eye", "left_eye"]
