"""What a comparison finds: the JSON that ``edgert compare`` writes (``edgert.compare/1``)."""

from __future__ import annotations

from typing import Literal

import msgspec

from edgert.coverage.record import Evidence, Numerics


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """How near one tensor of the candidate is to the reference's.

    Attributes:
        tensor: Its name.
        numerics: ``equal`` within tolerance or ``differs``; ``not-run`` where it was not given.
        cosine: Cosine of the angle between both; None where one is zero or not comparable.
        max_error: Largest absolute difference.
        mean_error: Mean absolute difference.
        snr_db: Signal to noise; None where there is no noise, no signal, or nothing to compare.
        reason: What differs, or why there is nothing to compare.
    """

    tensor: str
    numerics: Numerics
    cosine: float | None = None
    max_error: float | None = None
    mean_error: float | None = None
    snr_db: float | None = None
    reason: str = ""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One set of inputs.

    Attributes:
        name: The file, or ``seeded``.
        numerics: Of all outputs; what went wrong where there are none.
        outputs: Each output.
        reason: Why the candidate gave nothing.
    """

    name: str
    numerics: Numerics
    outputs: list[Figures] = []
    reason: str = ""


class Boxes(msgspec.Struct, frozen=True, kw_only=True):
    """What a detector's boxes come to, by the decoder of ``postprocess.detection``.

    Attributes:
        reference: Boxes by the reference, over all samples.
        candidate: Boxes by the candidate.
        matched: Boxes of the same class that overlap by half or more, in pairs.
        min_iou: Least overlap of a pair; None without pairs.
        mean_iou: Mean overlap of the pairs.
        max_score_error: Largest difference of the scores of a pair.
    """

    reference: int
    candidate: int
    matched: int
    min_iou: float | None = None
    mean_iou: float | None = None
    max_score_error: float | None = None


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor inside the model, and the node that makes it.

    Attributes:
        depth: Number of the node in the model's order.
        node: Its name.
        operator: Its operator.
        figures: How near the tensor is.
    """

    depth: int
    node: str
    operator: str
    figures: Figures


class Layers(msgspec.Struct, frozen=True, kw_only=True):
    """The model from its inputs to its outputs.

    Attributes:
        sample: The sample that was looked at: the worst.
        layers: Every tensor, in the order of the model.
        first: Tensor of the first layer beyond tolerance whose inputs are within it; empty: none.
        worst: Tensors of the ten layers with the most noise, the worst first.
        outputs: What the model's outputs came to while the layers were looked at.
        groups: In how many groups the layers were looked at.
    """

    sample: str
    layers: list[Layer]
    first: str
    worst: list[str]
    outputs: Numerics
    groups: int


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest sub-model that was found to show the fault.

    Attributes:
        folder: Where it was saved.
        nodes: Names of its nodes.
        operators: Their operators.
        fault: What it shows: ``differs``, ``crashed``, ...
        outputs: Its outputs, as they were at the proof.
        asked: How many sub-models were asked.
        proved: Whether it showed the fault once more, and the reference gave the expected outputs.
        reason: What was said of it at the proof.
    """

    folder: str
    nodes: list[str]
    operators: list[str]
    fault: Numerics
    outputs: list[Figures]
    asked: int
    proved: bool
    reason: str = ""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two devices.

    Attributes:
        device: ``adapter:DEVICE``.
        evidence: What its answers rest on.
        versions: Name -> version.
        options: As they were given.
    """

    device: str
    evidence: Evidence
    versions: dict[str, str]
    options: dict[str, str]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run found.

    Attributes:
        model: Catalog name or file name.
        sha256: Checksum of the file.
        reference: The device that is believed.
        candidate: The device under test.
        inputs: Where they came from, in words.
        rtol: Relative tolerance of each value, where its type allows for less.
        atol: Absolute tolerance, the same.
        numerics: The worst of all samples.
        outputs: Each output over all samples: the worst of each figure.
        samples: Each set of inputs.
        boxes: Of detectors.
        layers: Layer by layer, where it was asked for.
        bisected: The smallest sub-model, where it was asked for.
        notes: What has to be known beside the figures.
        schema: Name and version of this format.
    """

    schema: Literal["edgert.compare/1"] = "edgert.compare/1"
    model: str
    sha256: str
    reference: Side
    candidate: Side
    inputs: str
    rtol: float
    atol: float
    numerics: Numerics
    outputs: list[Figures]
    samples: list[Sample]
    boxes: Boxes | None = None
    layers: Layers | None = None
    bisected: Bisected | None = None
    notes: list[str] = []
