"""ONNX's reference evaluator, with the two quantisation operators it lacks for older graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

_HAS_QUANTISATION = 19  # operator set from which the evaluator has them itself


class QuantizeLinear(OpRun):
    """Per tensor, to int8, as ONNX defines it since operator set 10."""

    op_domain = ""

    def _run(self, x: Any, scale: Any, zero: Any, **_: Any) -> tuple[Any]:
        levels = np.rint(x / scale) + zero
        return (np.clip(np.nan_to_num(levels), -128, 127).astype(np.int8),)


class DequantizeLinear(OpRun):
    """Per tensor, from int8."""

    op_domain = ""

    def _run(self, x: Any, scale: Any, zero: Any, **_: Any) -> tuple[Any]:
        return (((x.astype(np.int32) - zero) * scale).astype(np.float32),)


def evaluate(model: Any, inputs: dict[str, Any]) -> list[Any]:
    """Return the outputs of a model, in its order.

    Raises:
        Exception: Whatever the operators of the evaluator raise.
    """
    version = max((each.version for each in model.opset_import if not each.domain), default=0)
    lacking = [] if version >= _HAS_QUANTISATION else [QuantizeLinear, DequantizeLinear]
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(model, new_ops=lacking).run(None, inputs))
