"""Outputs of each family become boxes in pixels of the source frame."""

from __future__ import annotations

import logging
import tracemalloc

import numpy as np
import pytest

from edgert.models.describe import DetectionHead
from edgert.tensor import IDENTITY, FrameHeader

LABELS = ("person", "car", "dog")
# The model sees 64x32; the frame is 640x320, of which the picture lacks the left 10 pixels.
HEADER = FrameHeader(width=640, height=320, transform=(10.0, 0.0, -10.0, 0.0, 10.0, 0.0))
SSD = DetectionHead(
    "ssd",
    {"boxes": "b", "classes": "c", "scores": "s", "count": "n"},
    (),
    LABELS,
    1,
    normalised=True,
)
SSD_SHAPES = {"b": (1, 10, 4), "c": (1, 10), "s": (1, 10), "n": (1,)}


def head(family: str, **others) -> DetectionHead:
    return DetectionHead(family, {"predictions": "out"}, labels=LABELS, **others)


def found_by(run, tensors, header=HEADER):
    sample = run.feed({"raw": tensors}, header)["detections"]
    boxes, scores, classes = (
        sample.tensors[name].copy() for name in ("boxes", "scores", "classes")
    )
    assert len(boxes) == len(scores) == len(classes)
    return boxes, scores, classes


def ssd_outputs(*rows) -> dict[str, np.ndarray]:
    tensors = {name: np.zeros(shape, np.float32) for name, shape in SSD_SHAPES.items()}
    for n, (box, number, score) in enumerate(rows):
        tensors["b"][0, n] = box
        tensors["c"][0, n] = number
        tensors["s"][0, n] = score
    tensors["n"][0] = len(rows)
    return tensors


def rows_of(shape, *rows) -> np.ndarray:
    out = np.zeros(shape, np.float32)
    for n, row in enumerate(rows):
        out[0, n] = row
    return out


def test_ssd(postprocess) -> None:
    rows = [
        ((0.25, 0.5, 0.75, 0.625), 1, 0.6),  # y1, x1, y2, x2
        ((0.0, 0.25, 0.5, 0.5), 3, 0.9),
        ((0.0, 0.25, 0.5, 0.5), 1, 0.49),
    ]
    with postprocess(SSD, SSD_SHAPES) as run:
        boxes, scores, classes = found_by(run, ssd_outputs(*rows))
    assert boxes.tolist() == [[150, 0, 310, 160], [310, 80, 390, 240]]
    assert scores.tolist() == pytest.approx([0.9, 0.6])
    assert classes.tolist() == [2, 0]


@pytest.mark.parametrize("count", [0, -1, np.nan, np.inf, 1])
def test_ssd_reads_no_more_boxes_than_there_are(postprocess, count) -> None:
    outputs = ssd_outputs(*[((0, 0, 1, 1), 1, 0.9)] * 5)
    outputs["n"][0] = count
    with postprocess(SSD, SSD_SHAPES) as run:
        assert len(found_by(run, outputs)[0]) == (1 if count == 1 else 0)


def test_yolox(postprocess) -> None:
    out = np.zeros((1, 42, 8), np.float32)
    # 8x4 cells of 8 pixels: the cell in column 2, row 1 is number 10; the next grid begins at 32.
    out[0, 10] = (0.5, 0.25, np.log(2), np.log(1), 0.9, 0.1, 0.8, 0.2)
    out[0, 33] = (0.0, 1.0, np.log(1), np.log(1), 0.6, 0.7, 0.0, 0.0)  # 0.42: too little
    out[0, 41] = (0.5, 0.5, 0.0, 0.0, 0.8, 0.0, 0.0, 1.0)  # stride 32, column 1
    with postprocess(head("yolox", strides=(8, 16, 32)), {"out": out.shape}) as run:
        boxes, scores, classes = found_by(run, {"out": out})
    assert boxes == pytest.approx(np.array([[310, 0, 630, 320], [110, 60, 270, 140]]), abs=1e-3)
    assert scores == pytest.approx([0.8, 0.72])
    assert classes.tolist() == [2, 1]


@pytest.mark.parametrize("has_objectness", [True, False])
@pytest.mark.parametrize("is_transposed", [True, False])
@pytest.mark.parametrize("normalised", [True, False])
def test_yolo(postprocess, has_objectness, is_transposed, normalised) -> None:
    scale = np.array((64, 32, 64, 32) if normalised else (1, 1, 1, 1))
    boxes = np.array([(20, 10, 10, 4), (40, 16, 8, 8), (40, 16, 8, 7), (5, 5, 2, 2)]) / scale
    objectness = [[0.9], [0.9], [0.8], [0.55]] if has_objectness else [[]] * 4
    scores = [(0, 0.9, 0), (1.0, 0, 0), (0.9, 0, 0), (0, 0, 0.4 if not has_objectness else 0.8)]
    rows = [(*b, *o, *s) for b, o, s in zip(boxes, objectness, scores, strict=True)]
    out = rows_of((1, 20, len(rows[0])), *rows)
    out = np.ascontiguousarray(out.transpose(0, 2, 1)) if is_transposed else out
    with postprocess(head("yolo", normalised=normalised), {"out": out.shape}) as run:
        found, scores, classes = found_by(run, {"out": out})
    assert found == pytest.approx(np.array([[350, 120, 430, 200], [140, 80, 240, 120]]), abs=1e-3)
    assert scores == pytest.approx([0.9, 0.81] if has_objectness else [1.0, 0.9])
    assert classes.tolist() == [0, 1]


def test_yolo_nms_free(postprocess) -> None:
    out = rows_of(
        (1, 300, 6), (10, 5, 20, 15, 0.7, 2), (10, 5, 20, 15, 0.8, 1), (0, 0, 5, 5, 0.3, 0)
    )
    with postprocess(head("yolo-nms-free"), {"out": out.shape}) as run:
        boxes, scores, classes = found_by(run, {"out": out})
    assert boxes.tolist() == [[90, 50, 190, 150]] * 2
    assert scores == pytest.approx([0.8, 0.7])
    assert classes.tolist() == [1, 2]


@pytest.mark.parametrize(("agnostic", "kept"), [(False, 2), (True, 1)])
def test_suppression_across_classes_is_asked_for(postprocess, agnostic, kept) -> None:
    out = rows_of((1, 20, 7), (20, 10, 10, 10, 0.9, 0, 0), (20, 10, 10, 9, 0, 0.8, 0))
    with postprocess(head("yolo"), {"out": out.shape}, agnostic=agnostic) as run:
        assert len(found_by(run, {"out": out})[0]) == kept


def test_normalised_boxes_side_by_side_both_stay(postprocess) -> None:
    rows = [(0.1, 0.1, 0.2, 0.2, 0.9, 0, 0), (0.3, 0.3, 0.2, 0.2, 0.8, 0, 0)]
    out = rows_of((1, 20, 7), *rows)
    with postprocess(head("yolo", normalised=True), {"out": out.shape}) as run:
        assert len(found_by(run, {"out": out})[0]) == 2


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("corners", "expected"),
    [
        ((10, 5, 10, 15), None),  # no width
        ((10, 15, 20, 5), None),  # negative height
        ((NAN, 5, 20, 15), None),
        ((10, 5, NAN, NAN), None),
        ((INF, INF, INF, INF), None),
        ((-30, -30, -20, -20), None),  # outside
        ((70, 5, 90, 15), None),
        ((-30, -30, 5, 5), (0, 0, 40, 50)),
        ((60, 30, 90, 90), (590, 300, 640, 320)),
        ((-INF, -INF, INF, INF), (0, 0, 640, 320)),
        ((-1e38, -1e38, 1e38, 1e38), (0, 0, 640, 320)),
    ],
)
def test_what_is_no_box_is_never_told(postprocess, corners, expected) -> None:
    """Boxes without an area are dropped, those over the frame's border are cut (N9)."""
    out = rows_of((1, 300, 6), (*corners, 0.9, 0))
    with postprocess(head("yolo-nms-free"), {"out": out.shape}) as run:
        boxes = found_by(run, {"out": out})[0]
    assert boxes.tolist() == ([] if expected is None else [list(expected)])


@pytest.mark.parametrize("wild", [NAN, INF, -INF, 1e38, -1e38, 90.0])
@pytest.mark.parametrize("family", ["yolox", "yolo"])
@pytest.mark.parametrize("column", range(8))
def test_a_wild_number_harms_no_other_box(postprocess, wild, family, column) -> None:
    out = np.zeros((1, 42, 8), np.float32)
    good = (0.5, 0.5, 0, 0) if family == "yolox" else (20, 10, 8, 8)
    out[0, 1] = (*good, 0.6, 1.0, 0, 0)
    out[0, 40] = (*good, 0.6, 0, 1.0, 0)
    alone = out.copy()
    out[0, 40, column] = wild
    with postprocess(head(family, strides=(8, 16, 32)), {"out": out.shape}) as run:
        wanted = found_by(run, {"out": alone})
        boxes, scores, classes = found_by(run, {"out": out})
    assert np.isfinite(boxes).all()
    assert np.isfinite(scores).all()
    assert (boxes[:, 2:] > boxes[:, :2]).all()
    assert (boxes >= 0).all()
    assert (boxes <= (640, 320, 640, 320)).all()
    good_box = wanted[0][wanted[2].tolist().index(0)]
    assert good_box.tolist() in boxes[classes == 0].tolist()


def test_classes_without_a_label_are_left_out_and_told_once(postprocess, caplog) -> None:
    outputs = ssd_outputs(((0, 0, 1, 1), 4, 0.9), ((0, 0, 1, 1), 0, 0.9), ((0, 0, 1, 1), 3, 0.8))
    outputs["c"][0, 3:5] = NAN
    outputs["s"][0, 3:5] = 0.9
    outputs["n"][0] = 5
    with postprocess(SSD, SSD_SHAPES) as run, caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert found_by(run, outputs)[2].tolist() == [2]
    assert [record.message for record in caplog.records] == [
        "stage 'people': the model gives class 4 and there are 3 labels: such boxes are left out"
    ]


def test_the_best_are_kept(postprocess) -> None:
    scores = np.linspace(0.51, 0.99, 20)
    rows = [(3 * n, 10, 2, 4, 0, score, 0) for n, score in enumerate(scores, 1)]
    out = rows_of((1, 20, 7), *rows)
    with postprocess(head("yolo"), {"out": out.shape}, max_detections=3) as run:
        assert found_by(run, {"out": out})[1] == pytest.approx(scores[:-4:-1], rel=1e-6)


def test_frames_with_and_without_detections(postprocess) -> None:
    with postprocess(SSD, SSD_SHAPES) as run:
        for count in (2, 0, 3, 0, 0, 1):
            rows = [((0, n / 10, 1, 1), 1, 0.9) for n in range(count)]
            assert found_by(run, ssd_outputs(*rows))[0].shape == (count, 4)


def test_the_header_says_that_boxes_are_in_source_pixels(postprocess) -> None:
    with postprocess(SSD, SSD_SHAPES) as run:
        header = run.feed({"raw": ssd_outputs()}, HEADER)["detections"].header
    assert header == HEADER._replace(transform=IDENTITY)


def test_nothing_is_made_for_every_anchor(postprocess) -> None:
    out = np.zeros((1, 3549, 85), np.float32)
    labels = tuple(f"class {n}" for n in range(80))
    yolox = DetectionHead("yolox", {"predictions": "out"}, (8, 16, 32), labels)
    out[0, ::400, 4:6] = 0.9
    with postprocess(yolox, {"out": out.shape}, size=(416, 416)) as run:
        assert len(found_by(run, {"out": out})[0]) > 0
        samples = {"raw": run.inputs["raw"].sample}
        loans = {"detections": run.outputs["detections"].loan}
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        run.stage.process(samples, loans)
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
    assert peak < 16_384
