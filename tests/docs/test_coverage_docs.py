"""Follows the walk-throughs for device vendors as they would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import models, tflite_models
from tests.docs.walkthrough import follow


@pytest.mark.slow
def test_a_vendors_walk_ends_in_reports(tmp_path: Path) -> None:
    models.convolution(tmp_path / "tiny.onnx", (1, 3, 8, 8))
    tflite_models.chain(tmp_path / "tiny.tflite")
    done = follow("npu-validation.md", tmp_path, timeout_s=300)
    for step in done:
        assert step.returncode == 0, step.stderr
    merged = json.loads((tmp_path / "ethos.json").read_text())
    assert merged["models"][0]["evidence"] == "vendor-compiler"
    assert merged["models"][0]["numerics"] == "not-run"
    assert {node["operator"] for node in merged["models"][0]["nodes"]}
    operators = json.loads((tmp_path / "ethos-operators.json").read_text())["cases"]
    where = {(each["operator"], each["dtype"]): each["placement"] for each in operators}
    assert where["CONV_2D", "i8"] == "device"
    assert where["CONV_2D", "f32"] == where["DIV", "u8"] == "cpu"
    assert all(each["reason"] for each in operators if each["placement"] == "cpu")
    for name in ("cpu.json", "cpu.html", "cpu.xml", "all.html", "all.md"):
        assert (tmp_path / name).stat().st_size > 0


def test_an_adapter_of_a_third_party_is_asked(tmp_path: Path) -> None:
    follow("new-adapter.md", tmp_path)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    info = tmp_path / "acme_coverage-1.0.dist-info"
    info.mkdir()
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n"
    (info / "METADATA").write_text(about)
    points = project["entry-points"]["edgert.coverage_adapters"]
    lines = "".join(f"{name} = {target}\n" for name, target in points.items())
    (info / "entry_points.txt").write_text(f"[edgert.coverage_adapters]\n{lines}")
    models.convolution(tmp_path / "conv.onnx", (1, 3, 8, 8))
    done = cover(tmp_path, "conv.onnx", "--device", "acme:rocket", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["models"][0]
    assert (found["placement"], found["evidence"]) == ("partly", "vendor-compiler")
    assert {node["operator"]: node["placement"] for node in found["nodes"]}["Conv"] == "device"
    assert {each["reason"] for each in found["refused"]} == {"only convolutions"}
    refused = cover(tmp_path, "conv.onnx", "--device", "acme:moon")
    assert refused.returncode == 2
    assert refused.stderr == "device acme:moon: Acme makes no chip 'moon'. Ask for acme:rocket.\n"


def cover(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "edgert", "coverage", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
