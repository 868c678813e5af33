"""Segmentation: which pixels belong to which class."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgert.results.detection import label_of
from edgert.results.frame import FrameResult
from edgert.results.rle import Mask, mask_of, runs_of


class Segment(msgspec.Struct, frozen=True):
    """All pixels of one class.

    Attributes:
        label: Name of the class; its number in words where the model has no labels.
        class_id: Number of the class; ``class`` in JSON.
        area: In pixels of the source frame.
        counts: Lengths of runs in the mask, as COCO's uncompressed RLE (``rle.py``).
    """

    label: str
    class_id: int = msgspec.field(name="class")
    area: float
    counts: list[int]


class MaskFrame(msgspec.Struct, frozen=True):
    """The grid that every ``counts`` of a result is about.

    Attributes:
        size: Height and width, in this order, as COCO has them: the model's resolution.
        box: x1, y1, x2, y2 of the grid in pixels of the source frame: the whole frame, but for
            what the model's own grid is too coarse for.
    """

    size: tuple[int, int]
    box: tuple[float, float, float, float]


class SegmentationResult(FrameResult, frozen=True, kw_only=True, tag="segmentation"):
    """The classes of one frame.

    Attributes:
        classes: Each class that has a pixel, but the background.
        mask: What ``counts`` are about.
    """

    classes: list[Segment]
    mask: MaskFrame

    def mask_of(self, segment: Segment) -> Mask:
        """Return the pixels of a class as a bool array of ``mask.size``."""
        return mask_of(segment.counts, self.mask.size)


def segments_from(mask: Mask, pixel_area: float, labels: Sequence[str]) -> list[Segment]:
    """Return the classes of a mask [H, W] in which 0 is the background.

    Args:
        mask: Numbers of classes.
        pixel_area: Pixels of the source frame that one of the mask stands for.
        labels: Name of each class, the background's too.
    """
    return [
        Segment(
            label_of(class_id, labels), class_id, round(sum(counts[1::2]) * pixel_area, 1), counts
        )
        for class_id, counts in runs_of(mask).items()
    ]
