"""``postprocess.classification``: a model's output becomes the best classes of the picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import numpy as np

from edgert.errors import FrameLostError, ModelError, UserError
from edgert.models.describe import ClassificationHead
from edgert.options import option
from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, Stage, StageOptions
from edgert.stages.postprocess.described import choose_tensors, read_names
from edgert.stages.postprocess.quantised import QUANTISED, Dequantiser, warn_of_coarse_scores
from edgert.stages.postprocess.sizes import in_each_size
from edgert.tensor import PortSpec, TensorSpec
from edgert.transport.address import Array

MOST_CLASSES = 100_000
_FLOATS = ("f16", "f32", "f64")
_SLACK = 0.01  # probabilities of an f16 model may be so far outside of 0 to 1


class ClassificationOptions(StageOptions):
    """Options of ``postprocess.classification``; the rest comes from the model's metadata."""

    top: int = option(
        default=5, ge=1, le=1000, description="At most so many classes a frame, the best."
    )
    threshold: float = option(default=0.01, gt=0, le=1, description="Lowest score of a class.")
    model: str | None = option(
        default=None, description="Model whose metadata is used; else the one whose outputs arrive."
    )
    tensors: dict[str, str] | None = option(
        default=None, description="Role -> name of the output: `scores`."
    )
    labels: tuple[str, ...] | str | None = option(
        default=None, description="Name of each class, or a text file with one on each line."
    )
    logits: bool | None = option(
        default=None,
        description="Whether the model leaves softmax to be done; then it is done here.",
    )


class ClassificationPostprocess(Stage):
    """Find the best classes of a picture, with scores from 0 to 1."""

    inputs: ClassVar[Mapping[str, str]] = {"raw": "tensors"}
    outputs: ClassVar[Mapping[str, str]] = {"classification": "classification"}
    options: ClassVar[type[StageOptions]] = ClassificationOptions
    live_options = frozenset({"threshold"})
    settings: ClassificationOptions

    @classmethod
    def plan(
        cls, options: ClassificationOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Say how many classes there may be, and put into attributes how they are found."""
        port, where = inputs["raw"], f"{context.place}, input 'raw'"
        each = in_each_size(options.model, port, context)
        described = each[0].model
        head = _head(described.classification if described else None, options, port, context)
        name = head.tensors["scores"]
        counts = [_count_classes(name, one.port.tensors[name], head.labels, where) for one in each]
        count = counts[0]
        most = min(options.top, count)
        tensors = {"scores": TensorSpec("f32", (most,)), "classes": TensorSpec("i32", (most,))}
        attributes = {"labels": list(head.labels), "tensor": name, "logits": head.logits}
        return {"classification": PortSpec("classification", tensors, attributes=attributes)}

    def open(self) -> None:
        """Get ready to read the output."""
        port = self.context.outputs["classification"]
        self._tensor: str = port.attributes["tensor"]
        self._is_logits: bool = port.attributes["logits"]
        arriving = self.context.inputs["raw"].tensors
        self._dequantiser = Dequantiser({self._tensor: arriving[self._tensor]})
        if not self._is_logits:
            place, log = self.context.place, self.context.log
            warn_of_coarse_scores([self._tensor], arriving, place, log)
        (self._most,) = port.tensors["scores"].shape
        self._has_warned = False

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write the classes of one frame, best first; of equal scores the first class."""
        loan = outputs["classification"]
        floats = self._dequantiser.floats(inputs["raw"].tensors)
        scores = self._scores(floats[self._tensor].reshape(-1).astype(np.float64))
        best = np.argsort(-scores, kind="stable")[: self._most]
        best = best[scores[best] >= self.settings.threshold]
        loan.tensor("scores", best.shape)[...] = scores[best]
        loan.tensor("classes", best.shape)[...] = best

    def _scores(self, values: Array) -> Array:
        """Return f64 [classes], from 0 to 1."""
        if not np.isfinite(values).all():
            raise FrameLostError("the model gives scores that are no numbers")
        if self._is_logits:
            return softmax(values)
        if not self._has_warned and (values.min() < -_SLACK or values.max() > 1 + _SLACK):
            self._warn(values)
        return values.clip(0, 1)

    def _warn(self, values: Array) -> None:
        self._has_warned = True
        self.context.log.warning(
            "%s: the model gives scores from %.3g to %.3g, which are cut to 0 to 1: are they "
            "logits? Then set `logits: true`",
            self.context.place,
            values.min(),
            values.max(),
        )


def softmax(values: Array) -> Array:
    """Return probabilities, which add up to 1."""
    powers = np.exp(values - values.max())
    chances: Array = powers / powers.sum()
    return chances


def _head(
    known: ClassificationHead | None,
    options: ClassificationOptions,
    port: PortSpec,
    context: PlanContext,
) -> ClassificationHead:
    where = f"{context.place}, input 'raw'"
    fields: dict[str, Any] = msgspec.structs.asdict(known) if known else {}
    if options.labels is not None:
        fields["labels"] = read_names(options.labels, "labels", context)
    if options.logits is not None:
        fields["logits"] = options.logits
    missing = [key for key in ("labels", "logits") if key not in fields]
    if missing:
        fault = "nothing is known of how the model's outputs become classes"
        raise UserError(where, fault, f"Give {', '.join(f'`{key}:`' for key in missing)}")
    fields["tensors"] = choose_tensors(
        fields.get("tensors") or {}, options.tensors, ("scores",), port, where
    )
    return ClassificationHead(**fields)


def _count_classes(name: str, spec: TensorSpec, labels: tuple[str, ...], where: str) -> int:
    """Return how many classes an output has a score for.

    Raises:
        ModelError: It is no list of scores, or not one for each label.
    """
    sizes = [size for size in spec.shape if size != 1] or [1]
    count = sizes[0] or 0
    fault = ""
    if len(sizes) != 1 or not 1 <= count <= MOST_CLASSES:
        fault = "and a score for each class of one picture is needed"
    elif len(labels) != count:
        fault = f"and there are {len(labels)} labels"
    elif spec.dtype in QUANTISED and spec.quantisation is None:
        fault = "whole numbers of which it is not known what they stand for"
    elif spec.dtype not in (*_FLOATS, *QUANTISED):
        fault = f"and scores are {', '.join((*_FLOATS, *QUANTISED))}"
    if fault:
        mend = "Give the right `tensors:` or `labels:`"
        if spec.dtype in QUANTISED:
            mend += "; the scale of a TFLite model is told by pip install 'edgert[tflite]'"
        raise ModelError(where, f"output {name!r} is {spec}, {fault}", mend)
    return count
