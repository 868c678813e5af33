"""One thing to ask: a model file with inputs, and what the answer is compared with."""

from __future__ import annotations

import msgspec

from edgert.coverage.adapter import Work
from edgert.coverage.record import Form


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work with its reference.

    Attributes:
        work: What the adapter is asked.
        operator: The operator under test; empty for a whole model.
        opset: Version of the operator set it is written for.
        dtype: Element type of the first input.
        form: How the case is put.
        expected: File of the reference outputs (``values.py``); empty: nothing to compare.
        rtol: Relative tolerance, where the suite allows more than the element type's own.
        atol: Absolute tolerance, the same.
        steps: Levels by which a quantised output may be off.
        reason: Why it cannot be put in this form; then it is not asked.
    """

    work: Work
    operator: str
    opset: int
    dtype: str
    form: Form
    expected: str = ""
    rtol: float = 0.0
    atol: float = 0.0
    steps: int = 0
    reason: str = ""

    @property
    def key(self) -> str:
        """Name of the item in its run."""
        return f"{self.work.name}:{self.form}"
