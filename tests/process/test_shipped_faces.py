"""The pipelines that find faces, run as a user does: two models, one truth."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from edgert.results import Detection, DetectionResult, decode
from tests.process.runs import REPOSITORY, unique_name

# Corners of the two faces, by eye.
FACES = {"astronaut": (178, 60, 271, 178), "grace_hopper": (180, 130, 355, 340)}
MODELS = {"faces": "face-centerface", "faces-tflite": "face-blazeface"}


@pytest.fixture(scope="module")
def photos(pulled, assets: Path, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    shutil.copy(pulled("sample:astronaut"), folder)
    shutil.copy(assets / "media" / "grace_hopper.bmp", folder)
    return folder


@pytest.fixture(scope="module")
def faces(edgert, pulled, photos: Path, tmp_path_factory) -> dict[str, list[Detection]]:
    """The one face of each photo, by each pipeline."""
    return {name: _run(edgert, pulled, name, photos, tmp_path_factory) for name in MODELS}


def _run(edgert, pulled, name: str, photos: Path, folders) -> list[Detection]:
    pulled(MODELS[name])
    file = folders.mktemp(name) / f"{name}.yaml"
    text = (REPOSITORY / "pipelines" / f"{name}.yaml").read_text()
    file.write_text(text.replace(f"name: {name}\n", f"name: {unique_name()}\n"))
    images = ("--set", "camera.kind=source.images", "--input", photos)
    done = edgert("run", file, *images, "--output", file.with_suffix(".jsonl"))
    assert done.returncode == 0, done.stderr
    results = list(map(decode, file.with_suffix(".jsonl").read_text().splitlines()))
    assert all(isinstance(result, DetectionResult) for result in results)
    assert [len(result.detections) for result in results] == [1, 1]
    return [result.detections[0] for result in results]


def iou_of(a, b) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    both = np.maximum(sides, 0).prod()
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return both / (sum(areas) - both)


@pytest.mark.parametrize("name", MODELS)
def test_each_finds_the_face(faces, name: str) -> None:
    for found, expected in zip(faces[name], FACES.values(), strict=True):
        assert found.label == "face"
        assert found.score > 0.75
        assert iou_of(np.array(found.box), np.array(expected)) > 0.7


def test_both_find_the_same_face(faces) -> None:
    """Their boxes differ in what belongs to a face; eyes and nose do not."""
    for one, other in zip(*faces.values(), strict=True):
        assert iou_of(np.array(one.box), np.array(other.box)) > 0.6
        width = one.box[2] - one.box[0]
        apart = np.array(one.landmarks[:3]) - np.array(other.landmarks[:3])
        assert np.linalg.norm(apart, axis=1).max() < width / 12


@pytest.mark.parametrize("name", MODELS)
def test_landmarks_lie_in_the_face_and_the_eyes_above_the_mouth(faces, name: str) -> None:
    for found in faces[name]:
        points = np.array(found.landmarks)
        x1, y1, x2, y2 = found.box
        assert ((points >= (x1 - 5, y1)) & (points <= (x2 + 5, y2))).all()
        assert points[0, 0] < points[1, 0]  # the person's right eye is to the left
        assert points[:2, 1].max() < points[2, 1] < points[3, 1]
