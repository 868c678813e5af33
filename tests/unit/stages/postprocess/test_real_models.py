"""The whole way of a real frame, against a script of the kind people write by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import av
import cv2
import msgspec
import numpy as np
import pytest

from edgert.models.catalog import load_catalog
from edgert.models.describe import ModelDescription
from edgert.stages.base import PlanContext
from edgert.stages.harness import opened
from edgert.stages.postprocess.detection import DetectionPostprocess
from edgert.stages.preprocess.image import ImagePreprocess
from edgert.tensor import FrameHeader, PortSpec, TensorSpec, image_port

openvino = pytest.importorskip("openvino", reason="needs the extra 'openvino'")

Found = list[tuple[list[float], float, int]]
Run = Callable[[np.ndarray], dict[str, np.ndarray]]


def described(name: str) -> ModelDescription:
    entry = load_catalog().model(name)
    return ModelDescription(
        name,
        "",
        entry.sha256,
        entry.format,
        entry.fixed_inputs,
        entry.outputs,
        entry.shape,
        **msgspec.structs.asdict(entry.handling),
    )


class Catalogued:
    """Models of the catalog."""

    def describe(self, model: str, shapes: Mapping[str, Any]) -> ModelDescription:
        return described(model)


def runner(path: Path, shape: list[int]) -> Run:
    """Compile a model of one input; running it gives its outputs by name."""
    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({model.input(0): shape})
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core.compile_model(model, "CPU", options)

    def run(picture: np.ndarray) -> dict[str, np.ndarray]:
        results = compiled(picture).items()
        return {n.removesuffix(":0"): array for port, array in results for n in port.names}

    return run


def frame_of(video: Path, number: int) -> av.VideoFrame:
    with av.open(str(video)) as container:
        for n, frame in enumerate(container.decode(video=0)):
            if n == number:
                return frame
    raise AssertionError(f"the video has no frame {number}")


def planes_of(frame: av.VideoFrame) -> dict[str, np.ndarray]:
    sheet = frame.to_ndarray(format="yuv420p").ravel()
    width, height = frame.width, frame.height
    size, half = width * height, (height // 2, width // 2)
    u, v = sheet[size:].reshape(2, *half)
    return {"y": sheet[:size].reshape(height, width), "u": u, "v": v}


def by_hand(infer: Run, bgr: np.ndarray, threshold: float) -> Found:
    """Letterbox in BGR, every anchor decoded, OpenCV's NMS."""
    height, width = bgr.shape[:2]
    ratio = min(416 / height, 416 / width)
    small = cv2.resize(bgr, (round(width * ratio), round(height * ratio)))
    canvas = np.full((416, 416, 3), 114, np.uint8)
    canvas[: small.shape[0], : small.shape[1]] = small
    rows = infer(canvas.transpose(2, 0, 1)[None].astype(np.float32))["output"][0]
    at = 0
    for stride in (8, 16, 32):
        for y in range(416 // stride):
            for x in range(416 // stride):
                rows[at, :2] = (rows[at, :2] + (x, y)) * stride
                rows[at, 2:4] = np.exp(rows[at, 2:4]) * stride
                at += 1
    scores = rows[:, 4:5] * rows[:, 5:]
    best, classes = scores.max(1), scores.argmax(1)
    boxes = np.concatenate([rows[:, :2] - rows[:, 2:4] / 2, rows[:, 2:4]], axis=1) / ratio
    kept = cv2.dnn.NMSBoxesBatched(boxes.tolist(), best.tolist(), classes.tolist(), threshold, 0.45)
    corners = boxes.copy()
    corners[:, 2:] += corners[:, :2]
    return [(corners[k].tolist(), float(best[k]), int(classes[k])) for k in kept]


def iou_of(a, b) -> float:
    both = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return both / (sum(areas) - both)


def detect(name: str, infer: Run, frame: av.VideoFrame, threshold: float) -> Found:
    context = PlanContext("stage", "stage 'stage'", ".", Catalogued(), {})
    header = FrameHeader(width=frame.width, height=frame.height)
    port = {"image": image_port(frame.width, frame.height)}
    with opened(ImagePreprocess, {"model": name}, port, context) as run:
        prepared = run.feed({"image": planes_of(frame)}, header)["tensor"]
        header = prepared.header
        (picture,) = prepared.tensors.values()
        results = infer(picture.copy())
        del picture
    outputs = described(name).outputs
    port = {"raw": PortSpec("tensors", outputs, attributes={"model": name})}
    tensors = {output: results[output] for output in outputs}
    with opened(DetectionPostprocess, {"threshold": threshold}, port, context) as run:
        sample = run.feed({"raw": tensors}, header)["detections"]
        arrays = (sample.tensors[part].tolist() for part in ("boxes", "scores", "classes"))
        return list(zip(*arrays, strict=True))


def best_match(box, number, others) -> float:
    return max((iou_of(box, other) for other, _, n in others if n == number), default=0.0)


def check_same(found: Found, expected: Found) -> None:
    """Compare the sure ones.

    Colours are converted before scaling by hand and after it here; two libraries' conversions of
    the same frame move boxes by as much.
    """
    sure = [(box, n) for box, score, n in expected if score > 0.5]
    clipped = [(np.clip(box, 0, (768, 576, 768, 576)).tolist(), n) for box, n in sure]
    overlaps = [best_match(box, n, found) for box, n in clipped]
    assert len(overlaps) >= 3
    assert min(overlaps) > 0.85
    assert np.median(overlaps) > 0.95
    for box, score, n in found:
        assert score < 0.5 or best_match(box, n, expected) > 0.85


@pytest.mark.parametrize("number", [0, 100, 300])
def test_yolox_finds_what_a_script_by_hand_finds(vtest, yolox_onnx, number) -> None:
    infer = runner(yolox_onnx, [1, 3, 416, 416])
    frame = frame_of(vtest, number)
    expected = by_hand(infer, frame.to_ndarray(format="bgr24"), 0.3)
    check_same(detect("yolox-nano", infer, frame, 0.3), expected)


def test_ssdlite_finds_what_a_script_by_hand_finds(vtest, pulled) -> None:
    entry = load_catalog().model("person-ssdlite")
    infer = runner(pulled("person-ssdlite"), entry.shape["image_tensor"])
    frame = frame_of(vtest, 100)
    small = cv2.resize(frame.to_ndarray(format="rgb24"), (300, 300))
    results = infer(small[None])
    boxes = results["detection_boxes"][0][:, [1, 0, 3, 2]] * (768, 576, 768, 576)
    scores = results["detection_scores"][0]
    expected = [
        (box.tolist(), float(score), 0)
        for box, score in zip(boxes, scores, strict=True)
        if score > 0.3
    ]
    check_same(detect("person-ssdlite", infer, frame, 0.3), expected)


def test_yunet_finds_the_face_of_a_photo(assets: Path) -> None:
    """A model that no catalog knows: all that is needed stands in the options."""
    file = assets / "models" / "yunet_n_320_320.onnx"
    photo = cv2.imread(str(assets / "media" / "grace_hopper.bmp"))
    infer = runner(file, [1, 3, 320, 320])
    context = PlanContext("stage", "stage 'stage'", ".", Catalogued(), {})
    header = FrameHeader(width=512, height=600, transform=(600 / 320, 0, 0, 0, 600 / 320, 0))
    canvas = np.zeros((320, 320, 3), np.uint8)
    canvas[:, :273] = cv2.resize(photo, (273, 320))
    results = infer(canvas.transpose(2, 0, 1)[None].astype(np.float32))
    specs = {name: TensorSpec("f32", array.shape) for name, array in results.items()}
    settings = {"family": "yunet", "labels": ["face"], "size": [320, 320], "iou": 0.3}
    inputs = {"raw": PortSpec("tensors", specs)}
    with opened(DetectionPostprocess, settings, inputs, context) as run:
        found = run.feed({"raw": results}, header)["detections"].tensors
        (box,), (points,) = found["boxes"].tolist(), found["landmarks"].tolist()
    # By eye.
    assert iou_of(box, (175, 115, 353, 338)) > 0.8
    expected = [(222, 188), (305, 190), (262, 236), (225, 272), (296, 272)]
    assert np.abs(np.array(points) - expected).max() < 12
