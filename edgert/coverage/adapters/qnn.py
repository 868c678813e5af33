"""QNN: Qualcomm's HTP behind ONNX Runtime, emulated where there is no such chip."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec
import onnxruntime as ort

from edgert.coverage.adapter import Facts
from edgert.coverage.adapters.onnxruntime import OnnxRuntimeAdapter

_SOC = "soc_model"


class QnnAdapter(OnnxRuntimeAdapter):
    """The HTP of one chip.

    Args:
        device: ``HTP``.
        options: Of the provider; ``soc_model`` must be among them: without it the emulator is of
            no chip in particular, and refuses hundreds of cases that every chip takes.
    """

    # Constants are folded as in any session for this chip: left in, they become parts without an
    # input, which the HTP refuses with the whole model.
    _optimisation = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._asked = device
        self._has_soc = _SOC in options
        super().__init__("QNN.CPU", {"backend_type": "htp", **options})

    def facts(self) -> Facts:
        """Say whether the provider is here and which chip it is to be."""
        facts = super().facts()
        versions = {**facts.versions, "onnxruntime-qnn": version("onnxruntime-qnn")}
        # The HTP has no f32: it computes such models in f16.
        facts = msgspec.structs.replace(facts, versions=versions, precision="f16")
        if self._asked != "HTP":
            return _without(facts, f"there is no device '{self._asked}'", "Name it as qnn:HTP")
        if not self._has_soc:
            mend = "Add --option soc_model=NUMBER, from Qualcomm's table of chips"
            return _without(facts, "it is not said which chip is meant", mend)
        return facts


def _without(facts: Facts, reason: str, mend: str) -> Facts:
    return msgspec.structs.replace(
        facts, evidence="unavailable", computes=False, reason=reason, mend=mend
    )
