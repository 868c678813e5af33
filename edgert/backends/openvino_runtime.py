"""The OpenVINO library itself, loaded without what it need not have, and what its errors say."""

from __future__ import annotations

import re
import sys
from typing import Any

_NOT_WANTED = ("openvino_telemetry", "openvino.tools.ovc")
_SOURCE = re.compile(r"Exception from \S+:\d+:\s*;?\s*")
_NOISE = ("FrontEnd API failed", "Caught exception:")


def _import_alone() -> Any:
    """Import OpenVINO without its telemetry and converter: it handles the absence of both.

    The converter is a quarter of the time, and 3 MB of every worker. Whoever wants it can import
    it all the same, by its own name.
    """
    kept_out = [name for name in _NOT_WANTED if name not in sys.modules]
    sys.modules |= dict.fromkeys(kept_out)  # type: ignore[arg-type]
    try:
        import openvino
        import openvino.frontend
        import openvino.opset13
        import openvino.preprocess
    finally:
        for name in kept_out:
            del sys.modules[name]
    return openvino


ov = _import_alone()
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
