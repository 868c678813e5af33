"""The interface behind which every way to ask a device stands: runtimes, vendors' tools, lists.

An adapter lives in a child process (``coverage/crew``): it may abort, hang or eat memory, and what
it was asked then has that as its answer. A third party adds one by the entry point
``edgert.coverage_adapters``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from edgert.coverage.record import Crossing, Evidence, Node, Placement
from edgert.coverage.values import Values


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter says of itself and its device before it is asked anything.

    Attributes:
        evidence: What its answers rest on; ``unavailable`` where it cannot answer here.
        versions: Of the runtime, driver, compiler: name -> version.
        formats: Model formats it takes: ``onnx``, ``tflite``, ``openvino-ir``, ...
        computes: Whether it returns outputs; a compiler or a list does not.
        precision: Element type in which it computes f32 models, where that is not f32: its numbers
            are then held to that type's tolerance, and the report says so.
        reason: Why it is unavailable.
        mend: What to do about it.
    """

    evidence: Evidence
    versions: dict[str, str]
    formats: tuple[str, ...]
    computes: bool
    precision: str = ""
    reason: str = ""
    mend: str = ""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One model to be asked about: a case's of one operator, or a whole one.

    Attributes:
        name: Of the case or model.
        path: The model file.
        format: Its format.
        inputs: File of inputs by name (``values.py``); empty: placement alone is asked.
        runs: Inferences to time after the first.
    """

    name: str
    path: str
    format: str
    inputs: str = ""
    runs: int = 3


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

    Attributes:
        placement: Of the whole.
        nodes: Of each node, where the adapter can tell.
        own_nodes: Whether ``nodes`` are those that a compiler made of the model, with their own
            names and parts, instead of the file's.
        crossings: Between device and CPU, where it can tell.
        unsupported: Whether it was refused because the device or runtime cannot do it.
        reason: Why it was refused or failed, in the runtime's words, on one line.
        latency_ms: Median of the timed inferences.
    """

    placement: Placement
    nodes: Sequence[Node] = ()
    own_nodes: bool = False
    crossings: Sequence[Crossing] = ()
    unsupported: bool = False
    reason: str = ""
    latency_ms: float | None = None


class Adapter(Protocol):
    """One way to ask one device."""

    def facts(self) -> Facts:
        """Say what answers rest on. Never by a presence test that lies: try the device."""
        ...

    def ask(self, work: Work) -> tuple[Answer, Values]:
        """Place a model and run it on its inputs.

        Returns:
            The answer, and the outputs by name (empty where nothing was computed).

        Raises:
            Exception: Anything: it becomes ``numerics: error`` of this work with the message.
        """
        ...
