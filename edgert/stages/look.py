"""A look at every result: a device that has gone mad gives numbers that are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_LOOKED_AT = 32


class Look:
    """Looks at a few numbers of each output, 5 us a frame, and at all only where those are absurd.

    Outputs whose size is known only after the inference, and whole numbers, are not looked at.

    Args:
        names: The outputs of floats whose size is known.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)

    def fault(self, outputs: Mapping[str, Any]) -> str:
        """Return what is absurd: an output in which no number is finite; empty where none is."""
        for name in self._names:
            flat = outputs[name].reshape(-1)
            few = flat[:: max(1, flat.size // _LOOKED_AT)]
            if few.size and not np.isfinite(few).any() and not np.isfinite(flat).any():
                return f"its output {name!r} is NaN or infinite throughout"
        return ""
