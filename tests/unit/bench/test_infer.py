"""What an inference costs beside the model, with real runtimes."""

from __future__ import annotations

import json

import pytest

from edgert.backends import registry
from tests.conftest import Edgert


def test_every_runtime_that_is_here_is_measured(edgert: Edgert) -> None:
    here = [n for n in ("openvino", "onnxruntime", "tflite") if registry.is_installed(n)]
    if not here:
        pytest.skip("no runtime is installed")
    done = edgert("bench", "infer", "--json", "--rounds", "100")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == "edgert.bench.infer/1"
    measured = [(each["runtime"], each["requests"]) for each in found["overheads"]]
    assert measured == [(name, requests) for name in here for requests in (1, 2)]
    assert all(0 < each["p50_ms"] <= each["p99_ms"] for each in found["overheads"])
