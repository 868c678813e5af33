"""A detector's boxes by both devices, through the stage that a pipeline has.

Runs in a child: OpenCV is loaded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edgert.coverage import values
from edgert.coverage.comparison.record import Boxes
from edgert.coverage.values import Array
from edgert.models.reader import Models
from edgert.results.likeness import Found, matches
from edgert.stages.base import PlanContext
from edgert.stages.harness import StageRun, opened
from edgert.stages.postprocess.detection import DetectionPostprocess
from edgert.tensor import DTYPES, FrameHeader, PortSpec, TensorSpec

_OURS = {theirs: ours for ours, theirs in DTYPES.items()}


def find(
    model: str, shapes: dict[str, list[int]], given: dict[str, Any], samples: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return what the boxes of all samples come to.

    Args:
        model: As ``models.describe`` takes it.
        shapes: Sizes of inputs that it leaves open.
        given: Options of ``postprocess.detection``.
        samples: Files of ``expected`` and ``actual`` outputs, and the picture's ``header``.

    Raises:
        UserError: It is not known how the outputs become boxes.
    """
    models = Models(Path.cwd())
    described = models.describe(model, shapes)
    outputs = _floats_of(values.load(Path(samples[0]["expected"])))
    specs = {name: _spec(name, array, described.outputs) for name, array in outputs.items()}
    attributes = {"model": model, "model_file": {"shapes": shapes}}
    port = PortSpec("tensors", specs, attributes=attributes)
    context = PlanContext("boxes", "--family", "/", models, {})
    size = next(iter(described.inputs.values())).shape
    with opened(DetectionPostprocess, given, {"raw": port}, context) as stage:
        found = [
            tuple(
                _boxes(stage, sample[side], specs, sample["header"], size)
                for side in ("expected", "actual")
            )
            for sample in samples
        ]
    return dict(msgspec.to_builtins(summary([(one, other) for one, other in found])))


def summary(found: list[tuple[Found, Found]]) -> Boxes:
    """Return what boxes by the reference and by the candidate come to."""
    pairs = [pair for expected, actual in found for pair in matches(expected, actual)]
    overlaps = [pair.iou for pair in pairs]
    return Boxes(
        reference=sum(len(expected.boxes) for expected, _ in found),
        candidate=sum(len(actual.boxes) for _, actual in found),
        matched=len(pairs),
        min_iou=round(min(overlaps), 5) if pairs else None,
        mean_iou=round(sum(overlaps) / len(overlaps), 5) if pairs else None,
        max_score_error=round(max(pair.score_error for pair in pairs), 5) if pairs else None,
    )


def _boxes(
    stage: StageRun,
    file: str,
    specs: Mapping[str, TensorSpec],
    header: Mapping[str, Any],
    size: tuple[int | None, ...],
) -> Found:
    outputs = values.load(Path(file))
    tensors = {name: np.asarray(outputs[name]) for name in specs}
    # Without a picture the model's own input stands for one.
    largest = max(each or 1 for each in size[1:]) if size else 1
    known = {"width": largest, "height": largest, **header}
    known["transform"] = tuple(known.get("transform", FrameHeader().transform))
    found = stage.feed({"raw": tensors}, FrameHeader(**known))["detections"].tensors
    return Found(*(np.array(found[name]) for name in ("boxes", "scores", "classes")))


def _floats_of(outputs: values.Values) -> dict[str, Array]:
    return {
        name: array
        for name, array in outputs.items()
        if isinstance(array, np.ndarray) and array.dtype.name in _OURS
    }


def _spec(name: str, array: Array, described: Mapping[str, TensorSpec]) -> TensorSpec:
    known = described.get(name)
    quantisation = known.quantisation if known else None
    return TensorSpec(_OURS[array.dtype.name], array.shape, quantisation)
