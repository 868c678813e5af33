"""Runs the pipeline of docs/devices.md on real frames."""

import json
import re
import shutil
from importlib.resources import files
from pathlib import Path

import pytest

from edgert.backends.registry import is_installed
from tests.conftest import Edgert

PAGE = Path(__file__).parent.parent.parent / "docs" / "devices.md"
MODEL = "yolox_nano_float16_quantize.tflite"


@pytest.mark.process
@pytest.mark.skipif(not is_installed("tflite"), reason="tflite is not installed")
def test_the_pipeline_finds_things_and_says_where_it_ran(
    edgert: Edgert, assets: Path, vtest: Path, tmp_path: Path
) -> None:
    if not (assets / "models" / MODEL).is_file():
        pytest.skip(f"no test asset {MODEL}")
    shutil.copy(assets / "models" / MODEL, tmp_path)
    shutil.copy(str(files("edgert.models") / "labels" / "coco80.txt"), tmp_path)
    name, text = re.search(
        r"^```yaml file=(\S+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S
    ).groups()
    (tmp_path / name).write_text(text)
    results = tmp_path / "results.jsonl"
    arguments = ["--input", vtest, "--output", results, "--max-frames", "5"]
    done = edgert("run", tmp_path / name, *arguments)
    assert done.returncode == 0, done.stderr
    frames = [json.loads(line)["detections"] for line in results.read_text().splitlines()]
    assert len(frames) == 5
    assert all(any(found["label"] == "person" for found in frame) for frame in frames)
    assert "device of detector: tflite:CPU, " in done.stderr
    assert "tflite:edgetpu refused: " in done.stderr
