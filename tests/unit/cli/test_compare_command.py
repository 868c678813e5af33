"""``edgert compare``: two devices by their names, pictures, reports, and every wrong use."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from PIL import Image

from tests import models, tflite_models

Edgert = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def convolution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.convolution(tmp_path_factory.mktemp("m") / "conv.onnx", (1, 3, 8, 8))


def test_two_runtimes_agree(convolution: Path, edgert: Edgert) -> None:
    done = edgert("compare", convolution, "--candidate", "openvino:CPU")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].split()[0::6] == ["y", "equal"]
    assert "inputs: drawn from a seed" in done.stdout
    assert "equal within tolerance on 1 sample" in done.stdout


def test_a_device_that_differs_ends_with_1_and_a_report_in_every_format(
    convolution: Path, tmp_path: Path, edgert: Edgert
) -> None:
    files = [tmp_path / f"r.{ending}" for ending in ("html", "json", "md")]
    reports = [part for file in files for part in ("--report", file)]
    done = edgert(
        "compare", convolution, "--candidate", "emulated:NPU", "--option", "precision=i8", *reports
    )
    assert done.returncode == 1
    assert done.stderr.startswith("conv.onnx: emulated:NPU: differs against onnxruntime:CPU: ")
    assert "first layer beyond tolerance whose inputs are within it: Conv" in done.stdout
    assert "a compiler may fuse otherwise" in done.stdout
    page, record, text = (file.read_text() for file in files)
    assert page.count("<svg") == 1
    found = json.loads(record)
    assert found["schema"] == "edgert.compare/1"
    assert (found["numerics"], found["candidate"]["evidence"]) == ("differs", "emulated")
    assert found["outputs"][0]["snr_db"] > 20
    assert text.startswith("# conv.onnx: emulated:NPU against onnxruntime:CPU: differs")


def test_pictures_go_through_the_preprocess_and_bad_ones_are_said(
    convolution: Path, tmp_path: Path, edgert: Edgert
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.new("RGB", (20, 10), (255, 0, 128)).save(folder / "a.png")
    (folder / "b.png").write_bytes(b"none")
    given = ("resize=letterbox-centre", "colour=RGB", "scale=0.00392157")
    options = [part for option in given for part in ("--preprocess", option)]
    ask = ["compare", convolution, "--candidate", "openvino:CPU", "--inputs", folder]
    done = edgert(*ask, *options, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [sample["name"] for sample in found["samples"]] == ["a.png"]
    assert "b.png" in found["notes"][0]
    done = edgert(*ask)
    assert done.returncode == 2
    assert "nothing is known of how the input 'x' of model" in done.stderr


def test_boxes_of_a_detector_have_their_partners(
    yolox_onnx: Path, assets: Path, edgert: Edgert
) -> None:
    picture = assets / "media" / "grace_hopper.bmp"
    ask = ["compare", yolox_onnx, "--candidate", "openvino:CPU", "--inputs", picture, "--json"]
    done = edgert(*ask, timeout=120)
    assert done.returncode == 0, done.stderr
    boxes = json.loads(done.stdout)["boxes"]
    assert boxes["reference"] == boxes["candidate"] == boxes["matched"] > 0
    assert boxes["min_iou"] > 0.999


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--bisect",), "--bisect: it is not said where the sub-model goes. Add --output DIR."),
        (("--bisect", "--output", "/dev/null/x"),
         "--output /dev/null/x: nothing can be written into /dev/null. "),
        (("--output", "out"), "--output: it is for --bisect. "),
        (("--report", "r.pdf"), "report r.pdf: there is no format '.pdf'. One of: .html, "),
        (("--candidate", "onnxruntime:CPU", "--reference", "onnxruntime:CPU"),
         "--candidate: onnxruntime:CPU is compared with itself. "),
        (("--candidate", "nosuch:CPU"), "device: there is no adapter 'nosuch'. "),
        (("--candidate", "openvino:NPU"), "device openvino:NPU: OpenVINO sees no device 'NPU' "),
        (("--candidate", "profile:rk3588"),
         "device profile:rk3588: it computes nothing, so there is nothing to compare. "),
        (("--only", "z"), "--only: conv.onnx has no output 'z'. Its outputs: y."),
        (("--inputs", "/nowhere"), "--inputs /nowhere: no such file or directory. "),
        (("--preprocess", "scale"), "--preprocess: 'scale' is no NAME=VALUE. "),
    ],
)  # fmt: skip
def test_wrong_use_is_said(
    arguments: tuple[str, ...], said: str, convolution: Path, edgert: Edgert, tmp_path: Path
) -> None:
    done = edgert("compare", convolution, "--candidate", "openvino:CPU", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)


def test_models_that_are_none_or_cannot_be_compared_are_said(
    tmp_path: Path, edgert: Edgert
) -> None:
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(b"\x08\x07not a model")
    still_open = models.doubling(tmp_path / "open.onnx", (None, 3))
    text = models.strings(tmp_path / "text.onnx")
    other = tflite_models.doubling(tmp_path / "m.tflite")
    for model, candidate, said in (
        (damaged, "openvino:CPU", "is damaged"),
        (still_open, "openvino:CPU", "its sizes are open: x"),
        (text, "openvino:CPU", "nothing here makes string for its input 'x'"),
        (other, "onnxruntime:CPU", "device onnxruntime:CPU: it takes no tflite files"),
        ("nosuch", "openvino:CPU", "neither a model of the catalog nor a file"),
    ):
        done = edgert("compare", model, "--candidate", candidate)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


def test_arrays_are_taken_by_name(tmp_path: Path, edgert: Edgert) -> None:
    node = helper.make_node("Add", ["x:0", "x:0"], ["y:0"])  # as TensorFlow's converter names them
    x, y = (models.value(name, (1, 3, 8, 8)) for name in ("x:0", "y:0"))
    path = models.save(tmp_path / "named.onnx", [node], [x], [y])
    ones = np.ones((1, 3, 8, 8), np.float32)
    np.savez(tmp_path / "in.npz", **{"x:0": ones})
    ask = ["compare", path, "--candidate", "openvino:CPU", "--inputs"]
    done = edgert(*ask, tmp_path / "in.npz")
    assert (done.returncode, done.stderr) == (0, "")
    np.savez(tmp_path / "bad.npz", **{"x:0": ones[:, :, :4]})
    done = edgert(*ask, tmp_path / "bad.npz")
    assert done.returncode == 2
    assert "'x:0' is float32 [1, 3, 4, 8]. The model takes float32 [1, 3, 8, 8]." in done.stderr
