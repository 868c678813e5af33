"""The model that devices are tried with, as the package ``onnx`` reads it."""

from __future__ import annotations

import pytest

from edgert.backends import survey
from edgert.backends.trial_model import SHAPE, trial_model, trial_models


def test_it_is_a_valid_model():
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(trial_model())
    onnx.checker.check_model(model, full_check=True)
    (value,) = model.graph.output
    assert tuple(size.dim_value for size in value.type.tensor_type.shape.dim) == SHAPE


@pytest.mark.parametrize(
    ("name", "package", "form"),
    [
        ("openvino", "openvino", "onnx"),
        ("onnxruntime", "onnxruntime", "onnx"),
        ("openvino", "openvino", "tflite"),
        ("tflite", "ai_edge_litert", "tflite"),
    ],
)
def test_it_runs_and_is_right(name, package, form, tmp_path):
    pytest.importorskip(package)
    file = tmp_path / f"trial.{form}"
    file.write_bytes(trial_models()[form])
    assert survey.prove(name, "CPU", str(file)) is False
