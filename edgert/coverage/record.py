"""What coverage finds: one record a case, one a model, all of a run in a report.

The records are the JSON that ``edgert coverage`` writes (``edgert.coverage/1``). Nothing in them
changes from run to run but the latencies, so that two runs can be compared.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Placement = Literal["device", "partly", "cpu", "rejected", "unknown"]
"""Where it ran; ``unknown`` where nothing proves it."""

Numerics = Literal["equal", "differs", "unsupported", "error", "crashed", "timed-out", "not-run"]
"""How the numbers compare with the reference, or why there are none."""

Evidence = Literal[
    "hardware", "vendor-emulator", "vendor-compiler", "emulated", "static-list", "unavailable"
]
"""What an answer rests on; ``emulated`` is edgert's own stand-in. ``unavailable`` is no answer."""

Form = Literal["published", "frozen", "int8-qdq", "static-batch", "rank-4", "tflite", "model"]
"""How a case is put to the device; ``frozen``: parameters are initializers, not inputs."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One operator in one form on one device.

    Attributes:
        case: Name in the suite, for example ``test_conv_with_strides_padding``.
        operator: The operator under test, with its domain where that is not ONNX's own.
        opset: Version of the operator set the case is written for; 0 where there is none.
        dtype: Element type of the first input: ``f32``, ``i8``, ...
        form: How the case was put.
        placement: Where it ran.
        numerics: How its outputs compare.
        evidence: What both rest on.
        reason: Why it was refused, differs or failed; empty where all is well.
        max_error: Largest absolute difference to the reference; None where nothing was compared.
        mean_error: Mean absolute difference.
        latency_ms: Median of a few inferences; None where it did not run.
    """

    case: str
    operator: str
    opset: int
    dtype: str
    form: Form
    placement: Placement
    numerics: Numerics
    evidence: Evidence
    reason: str = ""
    max_error: float | None = None
    mean_error: float | None = None
    latency_ms: float | None = None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a model, in the order of the file.

    Attributes:
        name: Name of the node, or of its first output.
        operator: Its operator.
        placement: Where it runs.
        reason: Why the device did not take it.
        macs: Multiply-accumulates of one inference; None where they cannot be told.
        partition: Number of the part it runs in, counted along the model; None where unknown.
        cycles: Of the device, as its compiler reckons; None where it does not.
        moved_kib: Read and written in memory, as the compiler reckons, in KiB.
    """

    name: str
    operator: str
    placement: Placement
    reason: str = ""
    macs: int | None = None
    partition: int | None = None
    cycles: int | None = None
    moved_kib: int | None = None


class Crossing(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that goes from the device to the CPU or back, once an inference.

    Attributes:
        tensor: Its name.
        to: Where it goes.
        size_bytes: How much that is; None where its shape is open.
    """

    tensor: str
    to: Literal["device", "cpu"]
    size_bytes: int | None = None


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """An operator that the device does not take in a model, and what that costs.

    Attributes:
        operator: The operator.
        nodes: How many nodes of it are refused.
        macs: Their multiply-accumulates together.
        reason: The commonest reason.
        mend: What to do about it, where something is known.
    """

    operator: str
    nodes: int
    macs: int = 0
    reason: str = ""
    mend: str = ""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One whole model on one device.

    Attributes:
        model: Catalog name or file name (no path: reports are compared between machines).
        sha256: Checksum of the file.
        placement: ``device`` if every node is there, ``partly``, ``cpu``, ``rejected``.
        numerics: Against the reference on the same inputs.
        evidence: What both rest on.
        share_of_nodes: Part of the nodes on the device, 0 to 1; None where unknown.
        share_of_macs: Part of the multiply-accumulates on the device; None where unknown.
        partitions: Parts the model falls into; None where unknown.
        crossings: Tensors between device and CPU; None where they cannot be told.
        refused: Operators that are not on the device, the costliest first.
        nodes: Every node.
        reason: Why the model as a whole was refused or failed.
        mend: What to do about it.
        max_error: Largest absolute difference over all outputs.
        mean_error: Mean absolute difference over all outputs.
        latency_ms: Median of a few inferences.
    """

    model: str
    sha256: str
    placement: Placement
    numerics: Numerics
    evidence: Evidence
    share_of_nodes: float | None = None
    share_of_macs: float | None = None
    partitions: int | None = None
    crossings: list[Crossing] | None = []
    refused: list[Refused] = []
    nodes: list[Node] = []
    reason: str = ""
    mend: str = ""
    max_error: float | None = None
    mean_error: float | None = None
    latency_ms: float | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run found of one device; ``edgert coverage merge`` puts several side by side.

    Attributes:
        device: ``adapter:DEVICE``: ``openvino:CPU``, ``qnn:qcs6490``, ``vela:ethos-u65-256``.
        versions: Of edgert, the runtime, the driver, the suite: name -> version.
        profile: Name of the device profile that was used, empty for none.
        cases: Sorted by operator, case, form.
        models: In the order asked.
        schema: Name and version of this format.
    """

    schema: Literal["edgert.coverage/1"] = "edgert.coverage/1"
    device: str
    versions: dict[str, str]
    profile: str = ""
    cases: list[Case] = []
    models: list[Model] = []
