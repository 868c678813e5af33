"""The TFLite library itself: ai-edge-litert, or tflite-runtime where only that is installed."""

from __future__ import annotations

import base64
import importlib
import importlib.util
from importlib.metadata import version
from typing import Any

import numpy as np

from edgert.errors import DeviceError

# Module -> the package that brings it, in the order of preference.
PACKAGES = {"ai_edge_litert": "ai-edge-litert", "tflite_runtime": "tflite-runtime"}

# What the library raises when it refuses a file, a shape, a delegate or an inference.
ERRORS = (RuntimeError, ValueError)

# A model of one f32 tensor and no operator: to see whether an interpreter can be made at all.
_SMALLEST = base64.b64decode(
    "GAAAAFRGTDMAAA4AFAAQAAwACAAAAAQADgAAABAAAAAcAAAAhAAAAAMAAAABAAAACAAAAAQABAAEAAAAAQAAABAAAAAM"
    "ABQAEAAMAAgABAAMAAAAEAAAABAAAAAUAAAAGAAAAAAAAAABAAAAAAAAAAEAAAAAAAAAAQAAABAAAAAMAAwACAAAAAAA"
    "BAAMAAAACAAAAAwAAAABAAAAeAAAAAEAAAABAAAAAAAAAA=="
)


def _import() -> tuple[Any, str]:
    for module, package in PACKAGES.items():
        if importlib.util.find_spec(module) is not None:
            return importlib.import_module(f"{module}.interpreter"), package
    raise ImportError(f"neither {' nor '.join(PACKAGES.values())} is installed")


lite, PACKAGE = _import()


def version_of_package() -> str:
    """Return the version and the name of the package in use: ``2.3.0 (ai-edge-litert)``."""
    return f"{version(PACKAGE)} ({PACKAGE})"


def require_interpreter() -> None:
    """Make an interpreter once: importing the library proves nothing.

    tflite-runtime is built for numpy 1 and can be imported under numpy 2; only then it fails.

    Raises:
        DeviceError: It cannot be made.
    """
    try:
        lite.Interpreter(model_content=_SMALLEST)
    except (SystemError, ImportError, *ERRORS) as error:
        said = error.__cause__ or error
        fault = f"{PACKAGE} {version(PACKAGE)} is installed and can make no interpreter: {said}"
        mend = f"Install {PACKAGE} anew"
        if PACKAGE == "tflite-runtime" and int(np.__version__.partition(".")[0]) > 1:
            fault = f"{fault} (it was built for numpy 1, and numpy {np.__version__} is here)"
            mend = (
                "Run: pip install 'edgert[tflite]', or, where there is no such package, "
                "pip install 'edgert[tflite-legacy]', which brings numpy 1"
            )
        raise DeviceError("backend 'tflite'", fault, mend) from error


def reason(error: BaseException) -> str:
    """Return what an error of TFLite says, on one line."""
    return " ".join(str(error).split())[:400].rstrip(".") or type(error).__name__
