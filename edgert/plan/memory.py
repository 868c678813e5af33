"""What a run needs of memory at least, as far as it is known before the run.

The constants were measured on x86-64 with Python 3.11 (proportional set size, so that pages that
processes share count once) and rounded down: what would run must not be refused. What a runtime
needs to compile and compute depends on the model, and is not known here.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgert.errors import ModelError
from edgert.models.formats import files_of
from edgert.plan.structs import Plan, WorkerPlan

MB = 1_000_000
ZYGOTE_BYTES = 12 * MB  # 15.9: Python, numpy, OpenCV and the stages' modules
# 14.8 for sink.jsonl, 15.2 for preprocess.image, 30 for source.video; less where workers are many.
WORKER_BYTES = 8 * MB
RUNTIME_BYTES = 40 * MB  # a runtime's libraries; 113 with a model of 7 MB in OpenVINO


class Need(msgspec.Struct, frozen=True):
    """What is needed.

    Attributes:
        rings: Shared memory.
        processes: The zygote, the workers, and the runtimes in those that infer.
        weights: The models' files, each once: several workers may share it.
    """

    rings: int
    processes: int
    weights: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.rings + self.processes + self.weights

    @property
    def mend(self) -> str:
        """Which keys to change: those of what needs the most."""
        if self.rings >= max(self.processes, self.weights):
            return "Lower limits.in_flight, queue slots or max_size of the sources"
        if self.processes >= self.weights:
            return "Let stages share a process (`worker:`), or lower `replicas`"
        return "Take a smaller `model`"


def need(plan: Plan) -> Need:
    """Return what a plan needs."""
    runtimes = sum(_has_runtime(plan, worker) for worker in plan.workers)
    processes = ZYGOTE_BYTES + len(plan.workers) * WORKER_BYTES + runtimes * RUNTIME_BYTES
    return Need(plan.shared_bytes, processes, _weights(plan))


def _has_runtime(plan: Plan, worker: WorkerPlan) -> bool:
    """Whether a worker loads a runtime's libraries; an emulated device needs none."""
    asked = [plan.requested.get(stage, ()) for stage in worker.stage_names]
    return any(devices and not devices[0].startswith("emulated") for devices in asked)


def _weights(plan: Plan) -> int:
    described = (
        port.attributes.get("model_file", {})
        for stage in plan.stages()
        for port in stage.output_ports.values()
    )
    models = {found["path"] for found in described if found.get("path")}
    return sum(map(_bytes_of, models))


def _bytes_of(model: str) -> int:
    """Return the size of all files of a model; 0 of one that is gone: its worker will tell."""
    try:
        return sum(file.stat().st_size for file in files_of(Path(model), f"model '{model}'"))
    except (OSError, ModelError):
        return 0
