"""Ports, frames and contexts for the tests of sinks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgert.models.describe import ModelDescription
from edgert.stages.base import PlanContext
from edgert.tensor import PortSpec, TensorSpec
from edgert.transport.address import Array

DETECTIONS = PortSpec(
    "detections",
    {
        "boxes": TensorSpec("f32", (10, 4)),
        "scores": TensorSpec("f32", (10,)),
        "classes": TensorSpec("i32", (10,)),
    },
    attributes={"labels": ["person", "car"]},
)

POSES = PortSpec(
    "poses",
    {"keypoints": TensorSpec("f32", (2, 3, 3)), "scores": TensorSpec("f32", (2,))},
    attributes={"keypoints": ["nose", "left_shoulder", "right_shoulder"]},
)

MASKS = PortSpec(
    "segmentation",
    {"mask": TensorSpec("u8", (120, 160))},
    attributes={"labels": ["background", "person", "car"]},
)

CLASSES = PortSpec(
    "classification",
    {"scores": TensorSpec("f32", (5,)), "classes": TensorSpec("i32", (5,))},
    attributes={"labels": ["cat", "parrot"]},
)

LINES = PortSpec(
    "lines",
    {"corners": TensorSpec("f32", (4, 4, 2)), "scores": TensorSpec("f32", (4,))},
    metadata_bytes=200,
)


class NoModels:
    """A model reader for stages that need no model."""

    def describe(self, model: str, shapes: Mapping[str, Any]) -> ModelDescription:
        raise AssertionError("a sink asks for no model")


def plan_context(folder: Path, streams: tuple[str, ...] = ("camera",)) -> PlanContext:
    return PlanContext("results", "stage 'results'", str(folder), NoModels(), {}, streams)


def found(*boxes: tuple[float, float, float, float], class_id: int = 0) -> dict[str, Array]:
    """The tensors of a frame in which these boxes were found."""
    return {
        "boxes": np.array(boxes, np.float32).reshape(-1, 4),
        "scores": np.full(len(boxes), 0.875, np.float32),
        "classes": np.full(len(boxes), class_id, np.int32),
    }


def pose(*points: tuple[float, float, float]) -> dict[str, Array]:
    """The tensors of a frame with one pose of these points (x, y, score)."""
    return {
        "keypoints": np.array([points], np.float32),
        "scores": np.full(1, 0.75, np.float32),
    }


def classed(*pairs: tuple[int, float]) -> dict[str, Array]:
    """The tensors of a frame of these classes and scores."""
    return {
        "classes": np.array([class_id for class_id, _ in pairs], np.int32),
        "scores": np.array([score for _, score in pairs], np.float32),
    }
