"""Several devices in one report: what each takes, and what its toolchain does not even read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from edgert.coverage import environments
from tests import models, tflite_models

DEVICES = ("openvino:CPU", "onnxruntime:CPU", "tflite:XNNPACK", "emulated:NPU")
VELA = "vela:ethos-u65-256"


def edgert(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "edgert", "coverage", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=dict(os.environ),
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_devices_stand_side_by_side_in_one_report(tmp_path: Path) -> None:
    named = (
        models.convolution(tmp_path / "conv.onnx", (1, 3, 8, 8)),
        tflite_models.chain(tmp_path / "chain.tflite"),
    )
    devices = (*DEVICES, VELA) if environments.ENVIRONMENTS["vela"].is_made else DEVICES
    files = [str(tmp_path / f"{number}.json") for number in range(len(devices))]
    for device, file in zip(devices, files, strict=True):
        edgert(*map(str, named), "--device", device, "--report", file)
    merged = [str(tmp_path / f"merged.{format_}") for format_ in ("json", "html", "md")]
    said = edgert("merge", *files, *(part for file in merged for part in ("--report", file)))
    assert said.count("2 models: ") == len(devices)

    found = _answers(json.loads(Path(merged[0]).read_text()))
    for device in ("openvino:CPU", "onnxruntime:CPU", "emulated:NPU"):
        assert found[device]["conv.onnx"]["placement"] == "device"
        assert found[device]["conv.onnx"]["numerics"] == "equal"
    assert found["emulated:NPU"]["conv.onnx"]["evidence"] == "emulated"
    assert _why_not(found["onnxruntime:CPU"]["chain.tflite"]) == (
        "it takes no tflite files, only onnx"
    )
    for device in set(devices) & {"tflite:XNNPACK", VELA}:
        assert _why_not(found[device]["conv.onnx"]) == "it takes no onnx files, only tflite"
        assert found[device]["chain.tflite"]["nodes"]
    assert "? it takes no onnx files, only tflite" in Path(merged[2]).read_text()


def _answers(merged: Any) -> dict[str, dict[str, Any]]:
    return {
        report["device"]: {model["model"]: model for model in report["models"]}
        for report in merged["reports"]
    }


def _why_not(model: Any) -> str:
    """Return why a model was not asked about; such a one never passes for an answer."""
    assert (model["placement"], model["numerics"], model["nodes"]) == ("unknown", "not-run", [])
    assert model["share_of_nodes"] is None
    return str(model["reason"])
