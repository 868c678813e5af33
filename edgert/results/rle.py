"""Masks as runs: the uncompressed RLE of the COCO data set.

A mask of one class is the lengths of its runs, column by column from the top left, alternating
between outside and inside; the first is of outside and may be 0. ``pycocotools.mask.frPyObjects``
reads it, and a loop of five lines in any language. Format: the head of ``common/maskApi.h`` in
https://github.com/cocodataset/cocoapi.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Mask: TypeAlias = np.ndarray[Any, Any]


def runs_of(mask: Mask) -> dict[int, list[int]]:
    """Return class -> lengths of runs, for each class above 0 in a mask [H, W] of classes."""
    columns = mask.T.ravel()
    starts = np.flatnonzero(columns[1:] != columns[:-1]) + 1
    starts = np.concatenate(([0], starts))
    ends = np.concatenate((starts[1:], [columns.size]))
    values = columns[starts] if columns.size else columns
    return {
        int(value): _lengths(starts[values == value], ends[values == value], columns.size)
        for value in np.unique(values)
        if value > 0
    }


def mask_of(counts: Sequence[int], size: tuple[int, int]) -> Mask:
    """Return the bool mask [H, W] that lengths of runs describe.

    Raises:
        ValueError: They are not those of a mask of this size.
    """
    height, width = size
    inside = np.arange(len(counts)) % 2 == 1
    return np.repeat(inside, counts).reshape(width, height).T


def _lengths(starts: Mask, ends: Mask, size: int) -> list[int]:
    borders = np.stack((starts, ends), axis=1).ravel()
    lengths: list[int] = np.diff(borders, prepend=0).tolist()
    rest = size - int(ends[-1])
    return [*lengths, rest] if rest else lengths
