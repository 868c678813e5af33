"""The OpenVINO library itself, loaded without what it need not have, and what its errors say."""

from __future__ import annotations

import re
import sys
from typing import Any

from edgert.backends.mends import FETCH_AGAIN
from edgert.errors import ModelError

_NOT_WANTED = ("openvino_telemetry", "openvino.tools.ovc")
_SOURCE = re.compile(r"Exception from \S+:\d+:\s*;?\s*")
# What it says of an operator for which it has nothing, and of several of them.
_LACKS = re.compile(r"(?:No translator found for|No conversion rule found for operations:) (.+)")
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


def unread(place: str, error: Exception) -> ModelError:
    """Return the error of a model that cannot be read: broken, or of operators that it lacks."""
    said = reason(error)
    lacking = _LACKS.search(said)
    if lacking is None:
        return ModelError(place, f"OpenVINO cannot read it: {said}", FETCH_AGAIN)
    operators = lacking[1].removesuffix(" node")
    return ModelError(
        place,
        f"OpenVINO does not support all of its operators; it lacks {operators}",
        "Ask for a runtime that has them, or export the model without them",
    )
