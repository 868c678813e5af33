"""Quantised outputs of a model: whole numbers, and the floats that they stand for."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import numpy as np

from edgert.tensor import Quantisation, TensorSpec
from edgert.transport.address import Array

QUANTISED = ("u8", "i8", "u16", "i16")
# With steps of more than this, one scale was made to cover boxes in pixels and scores alike.
_COARSE = 0.1


class Dequantiser:
    """Turns quantised tensors into f32, in memory of its own; others are handed on as they are."""

    def __init__(self, specs: Mapping[str, TensorSpec]) -> None:
        self._quantised: dict[str, tuple[Quantisation, Array]] = {
            name: (spec.quantisation, np.empty(tuple(size or 0 for size in spec.shape), np.float32))
            for name, spec in specs.items()
            if spec.quantisation is not None and spec.dtype in QUANTISED
        }

    def floats(self, tensors: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the tensors of one frame; what was quantised is valid until the next frame."""
        if not self._quantised:
            return tensors
        found = dict(tensors)
        for name, (quantisation, memory) in self._quantised.items():
            whole = tensors[name]
            into = memory[tuple(map(slice, whole.shape))]
            np.subtract(whole, quantisation.zero_point, out=into, dtype=np.float32)
            into *= quantisation.scale
            found[name] = into
        return found


def warn_of_coarse_scores(
    names: Iterable[str], specs: Mapping[str, TensorSpec], place: str, log: logging.Logger
) -> None:
    """Say which outputs that hold scores are quantised in steps too large for them."""
    for name in names:
        quantisation = specs[name].quantisation
        if quantisation is not None and quantisation.scale > _COARSE:
            log.warning(
                "%s: output '%s' is quantised in steps of %.3g, too coarse for scores from 0 to 1: "
                "export the model with scores in an output of their own",
                place,
                name,
                quantisation.scale,
            )
