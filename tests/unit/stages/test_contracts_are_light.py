"""Planning reads the contracts of stages in a process that must not load what their work needs."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
import edgert.stages.filter.detections
import edgert.stages.postprocess.detection
import edgert.stages.preprocess.image
print(*sorted({"cv2", "av", "openvino", "onnxruntime", "onnx"} & set(sys.modules)))
"""


def test_contracts_of_pictures_and_detections_load_no_heavy_library() -> None:
    said = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == ""
