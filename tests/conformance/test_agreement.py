"""One network on every runtime finds the same things in real frames."""

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from edgert.backends.base import Signature
from edgert.backends.registry import backend, is_installed
from tests import models

RUNTIMES = ("openvino", "onnxruntime", "tflite")
SIZE = 416
STRIDES = (8, 16, 32)
THRESHOLD = 0.3

pytestmark = pytest.mark.skipif(
    not all(map(is_installed, RUNTIMES)) or find_spec(models.NEEDS["tflite"]) is None,
    reason=f"needs {', '.join(RUNTIMES)}",
)


@pytest.fixture(scope="module")
def tensors(vtest: Path) -> list[np.ndarray]:
    return list(_tensors(vtest))


@pytest.fixture
def yolox_tflite(assets: Path) -> Path:
    """The same network with weights rounded to float16."""
    file = assets / "models" / "yolox_nano_float16_quantize.tflite"
    if not file.is_file():
        pytest.skip(f"no test asset {file}")
    return file


def _tensors(video: Path) -> Iterator[np.ndarray]:
    with av.open(str(video)) as container:
        for frame in islice(container.decode(video=0), 0, 100, 20):
            picture = frame.to_ndarray(format="bgr24")
            scale = SIZE / max(picture.shape[:2])
            small = cv2.resize(picture, None, fx=scale, fy=scale)
            boxed = np.full((SIZE, SIZE, 3), 114, np.float32)
            boxed[: small.shape[0], : small.shape[1]] = small
            yield np.ascontiguousarray(boxed.transpose(2, 0, 1)[None])


def _found(name: str, model: Path, tensors: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the boxes and scores of every place of every frame, without any suppression."""
    raw = []
    with models.session_of(name, model, threads=2) as session:
        outputs = models.arrays_for(session.outputs)
        for tensor in tensors:
            models.infer(session, {next(iter(session.inputs)): tensor}, outputs)
            raw.append(next(iter(outputs.values()))[0].copy())
    found = np.stack(raw)
    grid, stride = _grid()
    centre = (found[..., :2] + grid) * stride
    half = np.exp(found[..., 2:4]) * stride / 2
    boxes = np.concatenate([centre - half, centre + half], -1)
    return boxes, found[..., 4] * found[..., 5:].max(-1)


def _grid() -> tuple[np.ndarray, np.ndarray]:
    cells = [np.indices((SIZE // s, SIZE // s))[::-1].reshape(2, -1).T for s in STRIDES]
    sizes = [np.full((len(cell), 1), s) for cell, s in zip(cells, STRIDES, strict=True)]
    return np.concatenate(cells), np.concatenate(sizes)


def _overlap(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    least = np.maximum(ours[..., :2], theirs[..., :2])
    sides = (np.minimum(ours[..., 2:], theirs[..., 2:]) - least).clip(0)
    areas = [np.prod(boxes[..., 2:] - boxes[..., :2], -1) for boxes in (ours, theirs)]
    both = np.prod(sides, -1)
    return both / (sum(areas) - both)


def _agreement(
    ours: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]
) -> tuple[float, int]:
    """Return the share of boxes that are the same, and how many there are."""
    seen = np.maximum(ours[1], theirs[1]) > THRESHOLD
    overlap = _overlap(ours[0][seen], theirs[0][seen])
    same = (overlap > 0.98) & (np.abs(ours[1] - theirs[1])[seen] <= 0.01)
    return float(same.mean()), len(same)


def bare(signature: Signature) -> Signature:
    """Leave out what OpenVINO does not tell: the scale of what is quantised."""
    sides = (signature.inputs, signature.outputs)
    return Signature(*({name: spec.plain for name, spec in side.items()} for side in sides))


@pytest.mark.parametrize(
    ("kind", "arguments", "shapes"),
    [
        ("doubling", [(2, 3), "u8"], {}),
        ("two_in_two_out", [], {}),
        ("convolution", [["n", 3, "h", "w"]], {"x": [1, 3, 6, 8]}),
    ],
)
def test_tflite_files_look_the_same_to_both_runtimes(
    kind: str, arguments: list[object], shapes: dict[str, list[int]], tmp_path: Path
) -> None:
    model = getattr(models.of("tflite"), kind)(tmp_path / "m.tflite", *arguments)
    ours, theirs = (
        bare(backend(name).signature(str(model), shapes)) for name in ("tflite", "openvino")
    )
    assert ours == theirs
    assert list(ours.inputs) == list(theirs.inputs)
    assert list(ours.outputs) == list(theirs.outputs)


def test_published_tflite_models_look_the_same_to_both_runtimes(assets: Path) -> None:
    files = sorted((assets / "models").glob("*.tflite"))
    if not files:
        pytest.skip("no TFLite models among the test assets")
    for file in files:
        ours, theirs = (
            bare(backend(name).signature(str(file), {})) for name in ("tflite", "openvino")
        )
        assert ours == theirs


def test_one_file_is_the_same_on_two_runtimes(
    yolox_onnx: Path, yolox_tflite: Path, tensors: list[np.ndarray]
) -> None:
    on_openvino = {file: _found("openvino", file, tensors) for file in (yolox_onnx, yolox_tflite)}
    for name, file in (("onnxruntime", yolox_onnx), ("tflite", yolox_tflite)):
        share, boxes = _agreement(on_openvino[file], _found(name, file, tensors))
        assert boxes > 50
        assert share == 1


def test_tflite_finds_what_onnx_runtime_finds(
    yolox_onnx: Path, yolox_tflite: Path, tensors: list[np.ndarray]
) -> None:
    share, boxes = _agreement(
        _found("onnxruntime", yolox_onnx, tensors), _found("tflite", yolox_tflite, tensors)
    )
    assert boxes > 50
    assert share >= 0.99
