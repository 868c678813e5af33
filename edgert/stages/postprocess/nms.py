"""Boxes that show the same object: the best one stays, or they are blended into one."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from edgert.stages.postprocess.candidates import Candidates
from edgert.transport.address import Array

# Suppression compares every pair: this bounds it to a few milliseconds, whatever a model gives.
MAX_CANDIDATES = 1000


def suppress(boxes: Array, scores: Array, classes: Array, iou: float) -> Array:
    """Return indices of the boxes that stay, best first; equal scores keep their order.

    A box goes if its overlap (intersection over union) with a better one of its class that stays
    is more than ``iou``. It makes no difference in which unit the boxes are.

    Args:
        boxes: f64 [N, 4], x1 < x2 and y1 < y2, of sane size.
        scores: [N], above 0.
        classes: i32 [N], from 0; all the same for a suppression across classes.
        iou: From 0 to 1.
    """
    if not len(boxes):
        return np.empty(0, np.intp)
    rectangles = np.empty_like(boxes)
    corner = boxes[:, :2]
    np.subtract(boxes[:, 2:], corner, out=rectangles[:, 2:])
    # cv2 keeps classes apart by moving each one to the right; that takes coordinates from 0 on.
    np.subtract(corner, corner.min(), out=rectangles[:, :2])
    # cv2's stubs ask for lists; arrays are faster. It sorts by score, equal ones in their order.
    arguments: tuple[Any, ...] = (rectangles, scores, classes, 0.0, iou, 1.0, MAX_CANDIDATES)
    return np.asarray(cv2.dnn.NMSBoxesBatched(*arguments))


def blend(found: Candidates, classes: Array, iou: float, most: int) -> Candidates:
    """Return one box for each group of boxes that overlap, best first, at most ``most``.

    A group is the best box left and those of its class whose overlap with it is more than ``iou``.
    It becomes the mean of its boxes and landmarks weighted by their scores, with the best score:
    the weighted non-maximum suppression of MediaPipe.

    Args:
        found: Whole boxes of sane size, scores above 0, f64 landmarks or none.
        classes: [N]; all the same to blend across classes.
        iou: From 0 to 1.
        most: At least 1.
    """
    if not len(found.boxes):
        return found
    left = np.argsort(-found.scores, kind="stable")[:MAX_CANDIDATES]
    best: list[int] = []
    numbers = _numbers_of(found)
    means: list[Array] = []
    while len(left) and len(best) < most:
        first = int(left[0])
        in_group = _overlaps(found.boxes[first], found.boxes[left]) > iou
        in_group &= classes[left] == classes[first]
        in_group[0] = True
        group = left[in_group]
        means.append(np.average(numbers[group], axis=0, weights=found.scores[group]))
        best.append(first)
        left = left[~in_group]
    kept = found.take(np.array(best))
    blended = np.stack(means)
    points = kept.landmarks
    if points is not None:
        points = blended[:, 4:].reshape(points.shape)
    return kept._replace(boxes=blended[:, :4], landmarks=points)


def _numbers_of(found: Candidates) -> Array:
    """Return f64 [N, 4 + 2 K]: each box and its landmarks as one row."""
    points = found.landmarks
    if points is None:
        return found.boxes
    flat = points.reshape(len(points), points.shape[1] * 2)
    return np.concatenate([found.boxes, flat], axis=1)


def _overlaps(box: Array, others: Array) -> Array:
    """Return the intersection over union of a box with each of the others."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    both = np.maximum(sides, 0).prod(1)
    areas = (others[:, 2:] - others[:, :2]).prod(1)
    overlaps: Array = both / ((box[2:] - box[:2]).prod() + areas - both)
    return overlaps
