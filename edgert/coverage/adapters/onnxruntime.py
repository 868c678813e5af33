"""ONNX Runtime: any execution provider; which node went to it is read back, never assumed."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import onnxruntime as ort

from edgert.coverage.adapter import Answer, Facts, Work
from edgert.coverage.adapters.onnxruntime_values import known_inputs, runner
from edgert.coverage.placement import placement_of
from edgert.coverage.record import Node, Placement
from edgert.coverage.values import Value, Values, load

_SUFFIX = "ExecutionProvider"
_CPU = f"CPU{_SUFFIX}"
_QUIET = 4  # every error is raised too
# What it says where an operator, in this version or for these types, has no implementation.
_UNSUPPORTED = (
    "NOT_IMPLEMENTED",
    "Could not find an implementation",
    "is not a registered function/op",
    "No Op registered for",
    "is under development and support for this is limited",
    "This is an invalid model. Type Error",
    "No kernel",
)


class OnnxRuntimeAdapter:
    """One execution provider of the ONNX Runtime that is installed.

    Args:
        device: Short name of the provider: ``CPU``, ``OpenVINO``, ``QNN``.
        options: Of the provider.
    """

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        wanted = device.lower().removesuffix(_SUFFIX.lower())
        here = {name.removesuffix(_SUFFIX).lower(): name for name in ort.get_available_providers()}
        self._device = device
        self._provider = here.get(wanted, "")
        self._options = {key: str(value) for key, value in options.items()}
        self._here = [name.removesuffix(_SUFFIX) for name in here.values()]

    def facts(self) -> Facts:
        """Say whether the provider is in this build; whether it takes a node is for ``ask``."""
        versions = {"onnxruntime": ort.__version__}
        if not self._provider:
            return Facts(
                evidence="unavailable",
                versions=versions,
                formats=("onnx",),
                computes=False,
                reason=f"there is no execution provider '{self._device}' in this build",
                mend=f"It has: {', '.join(self._here)}",
            )
        return Facts(evidence="hardware", versions=versions, formats=("onnx",), computes=True)

    def ask(self, work: Work) -> tuple[Answer, Values]:
        """Make a session, read back where its nodes went, and run it."""
        try:
            session = self._session(work.path)
        except Exception as error:  # its classes do not tell what is missing from what is wrong
            said = " ".join(str(error).split())
            if any(sign in said for sign in _UNSUPPORTED):
                return Answer(placement="rejected", unsupported=True, reason=_short(said)), {}
            raise
        nodes = self._nodes(session)
        placement = placement_of(nodes)
        if not work.inputs:
            return Answer(placement=placement, nodes=nodes), {}
        outputs, latency_ms = _run(session, load(Path(work.inputs)), work.runs)
        return Answer(placement=placement, nodes=nodes, latency_ms=latency_ms), outputs

    def _session(self, path: str) -> Any:
        options = ort.SessionOptions()
        options.log_severity_level = _QUIET
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Nodes that the optimiser folds away could not be placed.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        providers = [(self._provider, self._options)]
        if self._provider != _CPU:
            providers.append((_CPU, {}))  # what the device refuses must run for the rest to run
        return ort.InferenceSession(path, options, providers=providers, enable_fallback=0)

    def _nodes(self, session: Any) -> list[Node]:
        def where(provider: str) -> Placement:
            return "device" if provider == self._provider else "cpu"

        return [
            Node(
                name=node.name,
                operator=f"{node.domain}::{node.op_type}" if node.domain else node.op_type,
                placement=where(part.ep_name),
            )
            for part in session.get_provider_graph_assignment_info()
            for node in part.get_nodes()
        ]


def _run(session: Any, inputs: Values, runs: int) -> tuple[dict[str, Value], float]:
    given = known_inputs(session, inputs)
    run = runner(session)
    outputs: dict[str, Value] = run(given)
    times_s = []
    for _ in range(runs):
        start_s = time.perf_counter()
        run(given)
        times_s.append(time.perf_counter() - start_s)
    return outputs, round(median(times_s) * 1e3, 4)


def _short(said: str) -> str:
    return said.rpartition("] : ")[2][:300] or said[:300]
