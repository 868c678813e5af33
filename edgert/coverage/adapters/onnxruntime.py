"""ONNX Runtime: any execution provider; which node went to it is read back, never assumed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnxruntime as ort

from edgert.backends import onnxruntime_providers as providers
from edgert.coverage.adapter import Answer, Facts, Work
from edgert.coverage.adapters.onnxruntime_values import known_inputs, runner
from edgert.coverage.adapters.timing import median_ms
from edgert.coverage.placement import placement_of
from edgert.coverage.record import Evidence, Node, Placement
from edgert.coverage.values import Value, Values, load
from edgert.errors import DeviceError

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
_COPY = re.compile(r"_token_\d+$")


class OnnxRuntimeAdapter:
    """One execution provider of the ONNX Runtime that is installed.

    Args:
        device: Short name of the provider: ``CPU``, ``OpenVINO``, ``QNN``.
        options: Of the provider.
    """

    # Nodes that the optimiser folds away could not be placed.
    _optimisation = ort.GraphOptimizationLevel.ORT_DISABLE_ALL

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        given = dict(options)
        library = str(given.pop("provider_library", ""))
        self._options = {key: str(value) for key, value in given.items()}
        self._provider: providers.Provider | None = None
        try:
            self._provider = providers.find(device, f"onnxruntime:{device}", library)
        except DeviceError as error:
            self._absent = error.faults[0]

    def facts(self) -> Facts:
        """Say whether the provider is here; whether it takes a node is for ``ask``."""
        versions = {"onnxruntime": ort.__version__}
        if self._provider is None:
            return Facts(
                evidence="unavailable",
                versions=versions,
                formats=("onnx",),
                computes=False,
                reason=self._absent.fault,
                mend=self._absent.mend,
            )
        if self._provider.version:
            name, _, version = self._provider.version.partition(" ")
            versions[name] = version
        evidence: Evidence = "vendor-emulator" if self._provider.is_emulated else "hardware"
        return Facts(evidence=evidence, versions=versions, formats=("onnx",), computes=True)

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
        # How long an emulator takes says nothing of the chip.
        runs = 0 if self._here().is_emulated else work.runs
        outputs, latency_ms = _run(session, load(Path(work.inputs)), runs)
        return Answer(placement=placement, nodes=nodes, latency_ms=latency_ms), outputs

    def _session(self, path: str) -> Any:
        options = ort.SessionOptions()
        options.log_severity_level = _QUIET
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = self._optimisation
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        provider = self._here()
        # What the device refuses goes to the CPU, which ONNX Runtime adds: the rest must run.
        return provider.session(path, options, provider.options(self._options, exact=True))

    def _here(self) -> providers.Provider:
        if self._provider is None:
            raise AssertionError("facts() said that it is unavailable")
        return self._provider

    def _nodes(self, session: Any) -> list[Node]:
        def where(provider: str) -> Placement:
            return "device" if provider == self._here().name else "cpu"

        return [
            Node(
                name=_as_in_the_file(node.name),
                operator=f"{node.domain}::{node.op_type}" if node.domain else node.op_type,
                placement=where(part.ep_name),
            )
            for part in session.get_provider_graph_assignment_info()
            for node in part.get_nodes()
        ]


def _as_in_the_file(name: str) -> str:
    """Return a node's name without the mark of its copy in the device's own layout."""
    return _COPY.sub("", name)


def _run(session: Any, inputs: Values, runs: int) -> tuple[dict[str, Value], float | None]:
    given = known_inputs(session, inputs)
    run = runner(session)
    outputs: dict[str, Value] = run(given)
    return outputs, median_ms(lambda: run(given), runs)


def _short(said: str) -> str:
    return said.rpartition("] : ")[2][:300] or said[:300]
