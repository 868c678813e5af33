"""How alike what two models make of one frame is: their boxes, or their outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

import numpy as np

from edgert.plan.opening import make_stage
from edgert.plan.structs import StagePlan, WorkerOrder
from edgert.results.likeness import Found, Likeness, likeness_of_boxes, likeness_of_tensors
from edgert.stages.base import Ports
from edgert.stages.harness import StageRun
from edgert.stages.postprocess.quantised import Dequantiser
from edgert.transport.slot import Sample

Samples = Mapping[str, Sample]


class Agreement(Protocol):
    """Compares frames one by one."""

    def compare(self, before: Samples, after: Samples) -> Likeness:
        """Compare what the model that runs gave with what the other one gives."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class OutputAgreement:
    """The tensors themselves; the least alike of them counts."""

    def __init__(self, ports: Ports) -> None:
        self._dequantisers = {name: Dequantiser(port.tensors) for name, port in ports.items()}

    def compare(self, before: Samples, after: Samples) -> Likeness:
        """Compare tensor by tensor; a frame without items (``preprocess.crops``) says nothing."""
        alike = 1.0
        arrays = [array for sample in before.values() for array in sample.tensors.values()]
        if not any(array.size for array in arrays):
            return Likeness(0.0, 0.0)
        for port, sample in before.items():
            floats = self._dequantisers[port].floats
            theirs = after[port].tensors
            mine = {name: np.array(array) for name, array in floats(sample.tensors).items()}
            if mine.keys() != theirs.keys():
                return Likeness(0.0, 1.0)
            for name, array in floats(theirs).items():
                alike = min(alike, likeness_of_tensors(mine[name], array))
        return Likeness(alike, 1.0)

    def close(self) -> None:
        """Nothing is open."""


class BoxAgreement:
    """The detections that the stage behind makes, before and after; classes go by their names."""

    def __init__(self, readers: Sequence[StagePlan], order: WorkerOrder) -> None:
        self._open = ExitStack()
        self._runs = [self._opened(plan, order) for plan in readers]
        self._input = next(iter(readers[0].inputs))
        self._output = port_of_detections(readers[0])
        self._labels: dict[str, int] = {}

    def compare(self, before: Samples, after: Samples) -> Likeness:
        """Compare the boxes of both."""
        raw = [next(iter(samples.values())) for samples in (before, after)]
        one, other = (self._find(run, at) for run, at in zip(self._runs, raw, strict=True))
        return likeness_of_boxes(one, other)

    def close(self) -> None:
        """Close both stages."""
        self._open.close()

    def _opened(self, plan: StagePlan, order: WorkerOrder) -> StageRun:
        stage = make_stage(plan, order.streams, order.folder)
        stage.open()
        self._open.callback(stage.close)
        return StageRun(stage)

    def _find(self, run: StageRun, raw: Sample) -> Found:
        found = run.feed({self._input: raw.tensors}, raw.header)[self._output].tensors
        labels = run.stage.context.outputs[self._output].attributes.get("labels", [])
        classes = [self._number(labels, int(each)) for each in found["classes"]]
        boxes, scores = (np.array(found[name]) for name in ("boxes", "scores"))
        return Found(boxes, scores, np.array(classes, np.int64))

    def _number(self, labels: list[str], number: int) -> int:
        """Return one number for a class by either model."""
        label = labels[number] if 0 <= number < len(labels) else f"class {number}"
        return self._labels.setdefault(label, len(self._labels))


def port_of_detections(plan: StagePlan) -> str:
    """Return the output port of a stage on which detections leave; empty where none do."""
    ports = plan.output_ports.items()
    return next((name for name, port in ports if port.kind == "detections"), "")
