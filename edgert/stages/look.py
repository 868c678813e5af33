"""A look at every result: a device that has gone mad gives numbers that are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_LOOKED_AT = 32


class Look:
    """Looks at a few numbers of each output, 5 us a frame, and at all only where those are absurd.

    Whole numbers are not looked at, nor what the inference did not give.

    Args:
        names: The outputs of floats.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)

    def fault(self, outputs: Mapping[str, Any]) -> str:
        """Return what is absurd: an output in which no number is finite; empty where none is."""
        for name in self._names:
            output = outputs[name]
            if not isinstance(output, np.ndarray):
                continue  # of open size, and nobody asked for its room
            flat = output.reshape(-1)
            few = flat[:: max(1, flat.size // _LOOKED_AT)]
            if few.size and not np.isfinite(few).any() and not np.isfinite(flat).any():
                return f"its output {name!r} is NaN or infinite throughout"
        return ""
