"""The shipped pipelines of each task, run as they are on real pictures."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgert import Pipeline

from .runs import REPOSITORY, unique_name

pytestmark = pytest.mark.process


def shipped(name: str, folder: Path, pictures: list[Path], **changes: dict[str, Any]) -> Pipeline:
    """Load a shipped pipeline that reads pictures, with changes to its stages."""
    photos = folder / "photos"
    photos.mkdir()
    for picture in pictures:
        shutil.copy(picture, photos)
    document = yaml.safe_load((REPOSITORY / "pipelines" / f"{name}.yaml").read_text())
    document["name"] = unique_name()
    source = next(iter(document["stages"]))
    document["stages"][source] = {"kind": "source.images", "uri": str(photos)}
    for stage, keys in changes.items():
        document["stages"][stage] |= keys
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return Pipeline.load(file)


def test_a_pose(tmp_path: Path, assets: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the extra 'tflite'")
    squat = assets / "media" / "squat.bmp"
    model = assets / "models" / "movenet_single_pose_lightning_ptq.tflite"
    pipeline = shipped("pose", tmp_path, [squat], estimator={"model": str(model)})
    (result,) = pipeline.results()
    (pose,) = result.poses
    assert pose.score > 0.6
    at = {point.name: (point.x, point.y) for point in pose.keypoints if point.score > 0.5}
    # Read off the picture by eye.
    for name, wanted in {
        "right_shoulder": (217, 250),
        "right_hip": (138, 366),
        "left_knee": (300, 402),
        "left_ankle": (260, 507),
    }.items():
        assert at[name] == pytest.approx(wanted, abs=15)


@pytest.mark.parametrize(
    ("picture", "label", "inside", "outside"),
    [
        ("cat_720p.jpg", "cat", (800, 400), (100, 600)),
        ("parrot.jpg", "bird", (280, 430), (50, 800)),
    ],
)
def test_a_segmentation(
    tmp_path: Path, assets: Path, picture: str, label: str, inside: Any, outside: Any
) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the extra 'tflite'")
    model = assets / "models" / "deeplabv3_mnv2_dm05_pascal_quant.tflite"
    photo = assets / "media" / picture
    (result,) = shipped("segment", tmp_path, [photo], segmenter={"model": str(model)}).results()
    (found,) = (segment for segment in result.classes if segment.label == label)
    mask = result.mask_of(found)
    assert result.mask.box == (0, 0, result.width, result.height)
    assert found.area == pytest.approx(mask.mean() * result.width * result.height, rel=1e-3)
    scale = mask.shape[1] / result.width
    assert mask[int(inside[1] * scale), int(inside[0] * scale)]
    assert not mask[int(outside[1] * scale), int(outside[0] * scale)]


def test_classes(tmp_path: Path, assets: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the extra 'tflite'")
    model = assets / "models" / "mobilenet_v2_1.0_224_quant.tflite"
    photos = [
        assets / "media" / name for name in ("cat_720p.jpg", "grace_hopper.bmp", "parrot.jpg")
    ]
    pipeline = shipped("classify", tmp_path, photos, classifier={"model": str(model)})
    results = list(pipeline.results())
    best = [(result.classes[0].label, result.classes[0].class_id) for result in results]
    assert best == [("Egyptian cat", 286), ("military uniform", 653), ("macaw", 89)]
    for result in results:
        scores = [one.score for one in result.classes]
        assert 1 <= len(scores) <= 5
        assert scores == sorted(scores, reverse=True)
        assert 0.8 < scores[0] <= sum(scores) <= 1.01


def test_text(tmp_path: Path, pulled: Callable[[str], Path]) -> None:
    for name in ("ocr-ppocrv4-det", "ocr-ppocrv4-rec"):
        pulled(name)
    crops = {"max_crops": 5}
    (result,) = shipped("text", tmp_path, [pulled("sample:page")], crops=crops).results()
    # From above; spaces are not always seen.
    assert [line.text.replace(" ", "") for line in result.lines] == [
        "Region-basedsegmentation",
        "Letusfirstdeterminemarkersofthecoinsandthe",
        "background.Thesemarkersarepixelsthatwecanlabel",
        "unambiguouslyaseitherobjectorbackground.Here,",
        "themarkersarefoundatthetwoextremepartsofthe",
    ]
    assert result.not_read == 2
    (left, top), (right, _), (_, bottom), _ = result.lines[0].polygon
    assert (left, top, right, bottom) == pytest.approx((6, 11, 293, 34), abs=4)
