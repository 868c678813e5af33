"""The ONNX Runtime library itself, loaded without its telemetry.

Official builds since 1.29 report to their maker over HTTPS, names of models included, and keep a
device's id in the user's cache; the switch in its API comes too late for the start. A camera calls
nobody unless its owner says so: who sets ORT_DISABLE_TELEMETRY to 0 has it.
"""

from __future__ import annotations

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime as ort  # noqa: E402  after the switch, which is read while it is loaded
from onnxruntime.capi import onnxruntime_pybind11_state as native  # noqa: E402

__all__ = ["native", "ort"]
