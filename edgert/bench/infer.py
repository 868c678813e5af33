"""What ``infer`` adds to a runtime's own time: an inference of the smallest model, in all.

A runtime computes it in a few microseconds, so nearly all of its time is the stage's, the session's
and the wake-ups between their threads: the bound is honest, if a little high.
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from statistics import quantiles
from typing import Any, cast

import msgspec
import numpy as np

from edgert import isolate
from edgert.backends import registry
from edgert.backends.trial_model import SHAPE, trial_models
from edgert.errors import DeviceError
from edgert.models.reader import Models
from edgert.stages.base import PlanContext
from edgert.stages.harness import StageRun, opened
from edgert.stages.infer import Infer
from edgert.tensor import FrameHeader, PortSpec, TensorSpec

TIMEOUT_S = 120.0
_ROUND_TIMEOUT_S = 0.1
_FORMATS = {"openvino": "onnx", "onnxruntime": "onnx", "tflite": "tflite"}
_REQUESTS = (1, 2)  # by the caller's own thread where the runtime's call blocks; by another
_THREADS = 2


class Overhead(msgspec.Struct, frozen=True):
    """One inference of the smallest model, from the frame's arrival to its end."""

    runtime: str
    requests: int
    p50_ms: float
    p99_ms: float


class InferReport(msgspec.Struct, frozen=True):
    """All runtimes that are installed."""

    rounds: int
    overheads: tuple[Overhead, ...]
    schema: str = "edgert.bench.infer/1"


def bench_infer(rounds: int) -> InferReport:
    """Measure each installed runtime on the CPU, each in a process of its own.

    Raises:
        EdgertError: None is installed, or one failed.
    """
    here = [name for name in _FORMATS if registry.is_installed(name)]
    if not here:
        mend = "Run: pip install 'edgert[openvino]'"
        raise DeviceError("bench infer", "no runtime is installed", mend)
    overheads = [
        isolate.call(
            f"{__name__}:{measure.__name__}",
            {"runtime": name, "requests": requests, "rounds": rounds},
            TIMEOUT_S + rounds * _ROUND_TIMEOUT_S,
            f"backend {name!r}",
        )
        for name in here
        for requests in _REQUESTS
    ]
    return InferReport(rounds, tuple(msgspec.convert(each, Overhead) for each in overheads))


def measure(runtime: str, requests: int, rounds: int) -> dict[str, Any]:
    """Return an ``Overhead`` as plain values; called in a child process."""
    format = _FORMATS[runtime]  # noqa: A001  the models' word
    settings = {"model": f"trial.{format}", "device": f"{runtime}:CPU", "requests": requests}
    arrives = {"tensor": PortSpec("tensors", {"x": TensorSpec("f32", SHAPE)})}
    with tempfile.TemporaryDirectory(prefix="edgert-bench-") as folder:
        (Path(folder) / f"trial.{format}").write_bytes(trial_models()[format])
        context = PlanContext("infer", "stage 'infer'", folder, Models(folder), {})
        with opened(Infer, settings, arrives, context, threads=_THREADS) as run:
            times_ns = _times(run, rounds)
    cuts = quantiles(times_ns, n=100)
    found: dict[str, Any] = msgspec.to_builtins(
        Overhead(runtime, requests, cuts[49] / 1e6, cuts[98] / 1e6)
    )
    return found


def _times(run: StageRun, rounds: int) -> list[int]:
    stage = cast("Infer", run.stage)
    samples = {"tensor": run.inputs["tensor"].fill({"x": np.ones(SHAPE)}, FrameHeader())}
    loans = {"outputs": run.outputs["outputs"].loan}
    ended = threading.Event()
    times_ns = []
    for _ in range(rounds):
        ended.clear()
        began_ns = time.perf_counter_ns()
        stage.start(samples, loans, lambda _: ended.set())
        ended.wait()
        times_ns.append(time.perf_counter_ns() - began_ns)
    return times_ns
