"""Pictures of several sizes, each inferred in the prepared size that suits it best."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests import models

from .runs import run, write_pipeline

pytestmark = pytest.mark.process

# Width and height of each picture, and where the light rectangle is.
PICTURES = {"a": (384, 191), "b": (191, 384), "c": (300, 300), "d": (384, 191)}
LIGHT = (40, 60, 120, 100)


def lines_of(folder: Path, pictures: Path, model: str, **finder: Any) -> tuple[dict, dict]:
    """Return the boxes found in each picture, and the summary."""
    results = folder / "out.jsonl"
    stages = {
        "photos": {"kind": "source.images", "uri": str(pictures)},
        "prepare": {"kind": "preprocess.image", "inputs": {"image": "photos.image"}},
        "finder": {"kind": "infer", "inputs": {"tensor": "prepare.tensor"}, "model": model},
        "lines": {"kind": "postprocess.text-lines", "inputs": {"raw": "finder.outputs"}},
        "results": {"kind": "sink.jsonl", "inputs": {"detections": "lines.detections"}},
    }
    prepare = {"for": "finder"}
    if not model.startswith("ocr"):
        prepare |= {"resize": "letterbox-centre", "colour": "BGR", "scale": 1 / 255, "pad": 0}
        stages["lines"] |= {"family": "db", "unclip": 0}
    stages["prepare"] |= prepare
    stages["finder"] |= {"requests": 2, **finder}
    stages["results"] |= {"path": str(results)}
    code, _, err, summary = run(write_pipeline(folder, stages))
    assert code == 0, err
    found = map(json.loads, results.read_text().splitlines())
    boxes = {one["frame"]: [each["box"] for each in one["detections"]] for one in found}
    return boxes, summary


@pytest.mark.parametrize("device", ["openvino:CPU", "onnxruntime:CPU"])
def test_landscape_portrait_and_square(device: str, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name, (width, height) in PICTURES.items():
        picture = np.zeros((height, width, 3), np.uint8)
        left, top, right, bottom = LIGHT
        picture[top:bottom, left:right] = 255
        cv2.imwrite(str(pictures / f"{name}.png"), picture)
    model = str(models.brightness(tmp_path / "m.onnx"))
    shape = {"x": [1, 3, [320, 640], [320, 640]]}
    boxes, summary = lines_of(tmp_path, pictures, model, shape=shape, device=device)
    for found in boxes.values():
        np.testing.assert_allclose(found, [LIGHT], atol=1)
    assert len(boxes) == len(PICTURES)
    costs = summary["stages"]["finder"]["variants"]
    assert list(costs) == [
        f"shape x [1, 3, {h}, {w}]" for h, w in ((640, 320), (320, 640), (320, 320))
    ]
    assert all(cost["open_s"] > 0 and cost["infer_ms"] > 0 for cost in costs.values())


def test_text_is_found_where_a_fixed_size_finds_it(
    tmp_path: Path, pulled: Callable[[str], Path]
) -> None:
    pulled("ocr-ppocrv4-det")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name, size in {"landscape": (1200, 560), "portrait": (560, 1200)}.items():
        cv2.imwrite(str(pictures / f"{name}.png"), page(*size))
    boxes = [
        lines_of(tmp_path, pictures, "ocr-ppocrv4-det", shape={"x": [1, 3, *sides]}, requests=1)[0]
        for sides in ([[320, 640], [320, 640]], [640, 640])
    ]
    for frame, count in enumerate((4, 9)):
        found, fixed = (each[frame] for each in boxes)
        assert len(found) == len(fixed) == count
        # The model has layers that average over the whole input, so its border moves a box by up
        # to 7 of the input's pixels: 14 of the picture's, whose letters are 40 high.
        np.testing.assert_allclose(found, fixed, atol=15)


def page(width: int, height: int) -> np.ndarray:
    """Draw a line of text every 120 pixels."""
    paper = np.full((height, width, 3), 255, np.uint8)
    for y in range(100, height - 40, 120):
        at, font = (40, y), cv2.FONT_HERSHEY_SIMPLEX
        cv2.putText(paper, "Some words 2026", at, font, 1.6, (0, 0, 0), 4)
    return paper
