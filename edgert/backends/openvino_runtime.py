"""The OpenVINO library itself, loaded without its telemetry, and what its errors say."""

from __future__ import annotations

import re
import sys
from typing import Any

_SOURCE = re.compile(r"Exception from \S+:\d+:\s*;?\s*")
_NOISE = ("FrontEnd API failed", "Caught exception:")


def _import_without_telemetry() -> Any:
    """Import OpenVINO so that its telemetry package is never loaded: it handles the absence."""
    was_there = "openvino_telemetry" in sys.modules
    if not was_there:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    try:
        import openvino
        import openvino.frontend
        import openvino.opset13
        import openvino.preprocess
    finally:
        if not was_there:
            del sys.modules["openvino_telemetry"]
    return openvino


ov = _import_without_telemetry()
# What reading a model raises: those of the frontends are no RuntimeError.
READ_ERRORS = (
    RuntimeError,
    ov.frontend.GeneralFailure,
    ov.frontend.InitializationFailure,
    ov.frontend.NotImplementedFailure,
    ov.frontend.OpConversionFailure,
    ov.frontend.OpValidationFailure,
)


def reason(error: Exception) -> str:
    """Return what an error of OpenVINO says, without the places in its own source."""
    lines = [_SOURCE.sub("", line).strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(_NOISE)]
    plain = [line for line in said if " failed at src/" not in line] or said
    return "; ".join(plain).rstrip(".")[:400] or type(error).__name__
