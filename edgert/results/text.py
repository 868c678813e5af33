"""Text: lines that were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy.typing as npt

from edgert.results.frame import FrameResult, rounded

Point = tuple[float, float]


class TextLine(msgspec.Struct, frozen=True):
    """One line of text.

    Attributes:
        text: What it says.
        score: Mean confidence of its characters, 0 to 1.
        polygon: Its four corners in pixels of the source frame, clockwise from the upper left one.
    """

    text: str
    score: float
    polygon: tuple[Point, Point, Point, Point]


class TextResult(FrameResult, frozen=True, kw_only=True, tag="text"):
    """What can be read in one frame.

    Attributes:
        lines: In reading order; empty where there is no text.
        not_read: Lines that were found, and not read since there were more than `max_crops`.
    """

    lines: list[TextLine]
    not_read: int


def lines_from(
    texts: Sequence[str], scores: npt.NDArray[Any], corners: npt.NDArray[Any]
) -> list[TextLine]:
    """Return the lines of a frame.

    Args:
        texts: What each says.
        scores: [N].
        corners: [N, 4, 2], x and y of each corner.
    """
    return [
        TextLine(text, score, _polygon(points))
        for text, score, points in zip(texts, rounded(scores, 4), rounded(corners, 2), strict=True)
    ]


def _polygon(points: Sequence[Sequence[float]]) -> tuple[Point, Point, Point, Point]:
    one, two, three, four = ((x, y) for x, y in points)
    return one, two, three, four
