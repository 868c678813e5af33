"""Non-maximum suppression: of boxes that show the same object, the best one stays."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

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
    order = np.argsort(-scores, kind="stable")[:MAX_CANDIDATES]
    corner = boxes[order, :2]
    # cv2 keeps classes apart by moving each one to the right; that takes coordinates from 0 on.
    if len(order):
        corner -= corner.min(0)
    rectangles = np.concatenate([corner, boxes[order, 2:] - boxes[order, :2]], axis=1)
    # cv2's stubs ask for lists; arrays are faster.
    arguments: tuple[Any, ...] = (rectangles, scores[order], classes[order], 0.0, iou)
    kept = cv2.dnn.NMSBoxesBatched(*arguments)
    return order[np.asarray(kept, np.intp)]
