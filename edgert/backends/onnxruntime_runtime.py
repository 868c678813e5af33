"""The ONNX Runtime library itself, loaded without its telemetry.

Official builds since 1.29 report to their maker over HTTPS, names of models included, and keep a
device's id in the user's cache; the switch in its API comes too late for the start. A camera calls
nobody unless its owner says so: who sets ORT_DISABLE_TELEMETRY to 0 has it.
"""

from __future__ import annotations

import os
import re

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime as ort  # noqa: E402  after the switch, which is read while it is loaded
from onnxruntime.capi import onnxruntime_pybind11_state as native  # noqa: E402

__all__ = ["RAISED", "native", "ort", "reason"]

# What the library raises when it refuses a device, a graph or an inference.
RAISED = (
    native.EPFail,
    native.EngineError,
    native.Fail,
    native.InvalidArgument,
    native.NotImplemented,
    native.RuntimeException,
    RuntimeError,
    ValueError,
)
_CODE = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
_SOURCE = re.compile(r"/\S+\.(?:cc|h):\d+ .*?\) (?=\S)")


def reason(error: BaseException) -> str:
    """Return what an error of ONNX Runtime says, without its codes and places in its source."""
    said = _SOURCE.sub("", _CODE.sub("", " ".join(str(error).split())))
    return said[:400].rstrip(". ") or type(error).__name__
