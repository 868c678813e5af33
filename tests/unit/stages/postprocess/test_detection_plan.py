from __future__ import annotations

import json
from typing import Any

import pytest

from edgert.errors import UserError
from edgert.models.describe import DetectionHead
from edgert.pipeline.adapter import read_as
from edgert.stages.postprocess.detection import DetectionOptions, DetectionPostprocess
from edgert.tensor import PortSpec, TensorSpec

LABELS = ("person", "car", "dog")
YOLOX = DetectionHead("yolox", {"predictions": "out"}, strides=(8, 16, 32), labels=LABELS)
SSD = DetectionHead(
    "ssd", {"boxes": "b", "classes": "c", "scores": "s", "count": "n"}, labels=LABELS
)
SSD_SHAPES = {"b": (1, 10, 4), "c": (1, 10), "s": (1, 10), "n": (1,)}


def yolo(classes: int) -> DetectionHead:
    return DetectionHead("yolo", {"predictions": "out"}, labels=tuple("abcdefgh"[:classes]))


def plan(context: Any, port: PortSpec, **settings: Any) -> PortSpec:
    options = read_as(DetectionOptions, settings)
    return DetectionPostprocess.plan(options, {"raw": port}, context)["detections"]


def refusal(context: Any, port: PortSpec, **settings: Any) -> str:
    with pytest.raises(UserError) as caught:
        plan(context, port, **settings)
    said = str(caught.value)
    assert said.startswith("stage 'people', input 'raw': ")
    return said


def test_the_port_carries_boxes_and_how_they_are_found(context, raw) -> None:
    port = plan(context(YOLOX), raw({"out": (1, 42, 8)}), max_detections=7)
    assert port.kind == "detections"
    assert port.tensors == {
        "boxes": TensorSpec("f32", (7, 4)),
        "scores": TensorSpec("f32", (7,)),
        "classes": TensorSpec("i32", (7,)),
    }
    assert port.attributes["labels"] == list(LABELS)
    assert port.attributes["heads"][0]["width"] == 64
    assert json.loads(json.dumps(port.attributes["heads"][0])) == port.attributes["heads"][0] | {
        "strides": [8, 16, 32],
        "landmarks": [],
    }


@pytest.mark.parametrize(
    ("shape", "classes", "layout", "has_objectness"),
    [
        ((1, 8400, 8), 3, "rows", True),  # v5
        ((1, 7, 8400), 3, "columns", False),  # v8 to v12
        ((1, 8400, 7), 3, "rows", False),
        ((1, 8, 8400), 3, "columns", True),
        ((8400, 6), 1, "rows", True),
        ((1, 6, 8400), 2, "columns", False),
        ((1, 9, 9), 4, None, None),
        ((1, 8400, 9), 3, None, None),
    ],
)
def test_the_yolo_layout_is_told_by_shape_and_labels(
    context, raw, shape, classes, layout, has_objectness
) -> None:
    port = raw({"out": shape})
    if layout is None:
        assert "labels fit in" in refusal(context(yolo(classes)), port)
        return
    head = plan(context(yolo(classes)), port).attributes["heads"][0]
    assert (head["layout"], head["has_objectness"]) == (layout, has_objectness)


def test_a_model_without_metadata_asks_for_exactly_what_is_missing(context, raw) -> None:
    port = raw({"out": (1, 8400, 8)})
    assert "Give `family:`, `labels:`." in refusal(context(), port)
    assert "Give `labels:`." in refusal(context(), port, family="yolo")
    said = plan(context(), port, family="yolo", labels=LABELS)
    assert said.attributes["heads"][0]["tensors"] == {"predictions": "out"}


def test_outputs_of_no_known_model_need_a_size(context) -> None:
    port = PortSpec("tensors", {"out": TensorSpec("f32", (1, 42, 8))})
    given = {"family": "yolox", "labels": LABELS}
    assert "Give `size: [width, height]`." in refusal(context(), port, **given)
    head = plan(context(), port, **given, size=(64, 32)).attributes["heads"][0]
    assert (head["width"], head["height"], head["strides"]) == (64, 32, (8, 16, 32))


@pytest.mark.parametrize(
    ("head", "shapes", "settings", "expected"),
    [
        (YOLOX, {"out": (1, 41, 8)}, {}, "gives [1,42,8]"),
        (YOLOX, {"out": (1, 42, 85)}, {}, "gives [1,42,8]"),
        (YOLOX, {"out": (4, 42, 8)}, {}, "floating-point numbers of one picture are needed"),
        (YOLOX, {"other": (1, 42, 8)}, {}, "has no tensor 'out'. It has: other (f32[1,42,8])"),
        (YOLOX, {"out": (42,)}, {}, "does not give"),
        (SSD, SSD_SHAPES | {"s": (1, 11)}, {}, "do not belong together as family ssd"),
        (SSD, SSD_SHAPES, {"tensors": {"boxes": "b"}}, "which output is classes, scores"),
        (SSD, SSD_SHAPES, {"tensors": {"box": "b"}}, "has no role 'box'"),
        (YOLOX, {"out": (1, 42, 8)}, {"family": "yolo-nms-free"}, "six numbers a box"),
        (
            DetectionHead("detr", {}, labels=LABELS),
            {"out": (1, 2)},
            {},
            "family 'detr' is not known",
        ),
    ],
)
def test_outputs_that_do_not_fit_their_family(
    context, raw, head, shapes, settings, expected
) -> None:
    assert expected in refusal(context(head), raw(shapes), **settings)


def test_quantised_predictions_are_refused(context, raw) -> None:
    assert "is u8[1,42,8]" in refusal(context(YOLOX), raw({"out": (1, 42, 8)}, "u8"))


def test_ssd_boxes_are_fractions_unless_it_is_said_otherwise(context, raw) -> None:
    port = raw(SSD_SHAPES)
    assert plan(context(SSD), port).attributes["heads"][0]["normalised"]
    assert not plan(context(SSD), port, normalised=False).attributes["heads"][0]["normalised"]


def test_labels_may_come_from_a_file(context, raw, tmp_path) -> None:
    (tmp_path / "names.txt").write_text("person\ncar\n\n dog \n", encoding="utf-8")
    port = plan(context(YOLOX), raw({"out": (1, 42, 8)}), labels="names.txt")
    assert port.attributes["labels"] == ["person", "car", "dog"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "cannot read"), (b"\xff\xfe", "is not UTF-8 text"), (b"x" * 2**21, "is too large")],
)
def test_a_labels_file_that_cannot_be_read(context, raw, tmp_path, content, expected) -> None:
    if content is not None:
        (tmp_path / "names.txt").write_bytes(content)
    with pytest.raises(UserError, match="stage 'people', labels: ") as caught:
        plan(context(YOLOX), raw({"out": (1, 42, 8)}), labels="names.txt")
    assert expected in str(caught.value)
