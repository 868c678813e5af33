"""The suites of single operators: their cases are made once, in a child, and chosen by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from edgert import isolate
from edgert.coverage.suites.item import Item
from edgert.coverage.suites.kept import read_index
from edgert.errors import UserError
from edgert.models.cache import cache_root

Suite = Literal["onnx", "tflite"]
_PREPARE_WITHIN_S = 600.0
# Suite -> what writes its models, and the extra of edgert that brings it.
_NEEDS = {"onnx": ("onnx", "onnxruntime"), "tflite": ("ai_edge_litert", "tflite")}
_NAMES = {
    "onnx": "Names as in ONNX: Conv, Gemm, ai.onnx.ml::Scaler",
    "tflite": "Names as in TFLite: CONV_2D, FULLY_CONNECTED, RESIZE_BILINEAR",
}


class Cases(msgspec.Struct, frozen=True):
    """What a device is to be asked, and the versions that a report names."""

    items: Sequence[Item]
    versions: Mapping[str, str]


def cases_of(suite: Suite, forms: Sequence[str], only: str) -> Cases:
    """Return the cases of a suite.

    Args:
        suite: Its name.
        forms: In which its cases are put; only those of ONNX have several.
        only: Operators, with commas; empty for all.

    Raises:
        UserError: There is no such operator, or what writes the models is not installed.
    """
    module, extra = _NEEDS[suite]
    if importlib.util.find_spec(module) is None:
        fault = f"its models are written by {module.replace('_', '-')}, which is not installed"
        raise UserError(f"suite {suite}", fault, f"Run: pip install 'edgert[{extra}]'")
    found = _onnx(forms) if suite == "onnx" else _tflite()
    known = {item.operator for item in found.items}
    wanted = {name.strip() for name in only.split(",") if name.strip()} or known
    if unknown := sorted(wanted - known):
        fault = f"the suite has no operator {', '.join(unknown)}"
        raise UserError("--only", fault, _NAMES[suite])
    return Cases([item for item in found.items if item.operator in wanted], found.versions)


def _onnx(forms: Sequence[str]) -> Cases:
    found = _prepared("onnx", "onnx_cases", {"forms": list(forms)})
    items = [item for form in forms for item in read_index(found[form])]
    return Cases(items, {"onnx": found["onnx"]})


def _tflite() -> Cases:
    found = _prepared("tflite", "tflite.cases", {})
    versions = {name: found[name] for name in ("suite", "reference")}
    return Cases(read_index(found["index"]), versions)


def _prepared(suite: Suite, module: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    folder = str(cache_root() / "coverage")
    function = f"edgert.coverage.suites.{module}:prepare"
    given = {"folder": folder, **arguments}
    found: dict[str, str] = isolate.call(function, given, _PREPARE_WITHIN_S, f"suite {suite}")
    return found
