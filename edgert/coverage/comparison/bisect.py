"""Cuts a model down to the smallest sub-model that shows the fault, each one asked alone.

A sub-model is fed with what the reference has where it is cut out, so that no error of the layers
before reaches it, and its outputs are compared with the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from edgert.coverage import values
from edgert.coverage.comparison.figures import measure_all, worse
from edgert.coverage.comparison.layers import OnStep, Opened, groups_of
from edgert.coverage.comparison.record import Bisected, Figures
from edgert.coverage.comparison.shrink import shrink
from edgert.coverage.comparison.subject import Subject
from edgert.coverage.graph import Graph, GraphNode
from edgert.coverage.record import Numerics
from edgert.coverage.run import judge
from edgert.coverage.values import Value
from edgert.errors import ModelError, RunError


class Part(msgspec.Struct, frozen=True):
    """A sub-model in a folder: ``model.onnx``, its inputs and expected outputs.

    Attributes:
        model: The file.
        inputs: What it is fed with (``values.py``).
        expected: What the reference has of its outputs (``values.py``).
    """

    model: Path
    inputs: Path
    expected: Path


class Found(msgspec.Struct, frozen=True):
    """What asking a sub-model came to.

    Attributes:
        numerics: Of all its outputs, or what went wrong.
        outputs: Each output.
        reason: What was said.
    """

    numerics: Numerics
    outputs: list[Figures] = []
    reason: str = ""


class Bisection:
    """One search.

    Args:
        subject: The model between two devices.
        opened: The model that can be cut.
        inputs: File of the inputs that show the fault.
        fault: What the whole shows: the part must show the same.
        on_step: Told what goes on.
    """

    def __init__(
        self, subject: Subject, opened: Opened, inputs: Path, fault: Numerics, on_step: OnStep
    ) -> None:
        self._subject = subject
        self._opened = opened
        self._inputs = inputs
        self._fault = fault
        self._on_step = on_step
        self._known: dict[tuple[str, ...], bool] = {}
        self._all: dict[str, Value] = {}
        folder = subject.folder
        self._part = Part(folder / "part.onnx", folder / "part-in.npz", folder / "part-out.npz")

    def search(self, suspect: str) -> tuple[Bisected, Part]:
        """Return the smallest part that was found, proved once more, and its files.

        Args:
            suspect: Tensor of the layer to be tried first; empty for none.

        Raises:
            RunError: No sub-model shows the fault, not even all nodes.
        """
        nodes = self._smallest(suspect)
        self._make(nodes)
        self._subject.candidate.renew()
        again = self._ask()
        sound = self._is_sound()
        operators = {node.name: node.operator for node in self._opened.graph.nodes}
        bisected = Bisected(
            folder="",
            nodes=nodes,
            operators=[operators[name] for name in nodes],
            fault=self._fault,
            outputs=again.outputs,
            asked=len(self._known),
            proved=sound and again.numerics == self._fault,
            reason=again.reason,
        )
        return bisected, self._part

    def _smallest(self, suspect: str) -> list[str]:
        names = [node.name for node in self._opened.graph.nodes]
        for node in self._opened.graph.nodes:
            if suspect in node.outputs and self._shows([node.name]):
                return [node.name]
        if not self._shows(names):
            fault = (
                f"all nodes cut out together do not show what the whole does ({self._fault}): it "
                "may depend on how the model is compiled"
            )
            raise RunError("--bisect", fault)
        return shrink(names, self._shows)

    def _shows(self, nodes: Sequence[str]) -> bool:
        key = tuple(nodes)
        if key not in self._known:
            self._on_step(f"bisect: {len(nodes)} nodes, {len(self._known) + 1} sub-models asked")
            self._known[key] = self._make(nodes) and self._ask().numerics == self._fault
        return self._known[key]

    def _make(self, nodes: Sequence[str]) -> bool:
        """Write the sub-model and its files; return whether there is one."""
        reads, makes = boundary(self._opened.graph, nodes, self._opened.outputs)
        if not makes:
            return False
        subject, part = self._subject, self._part
        known = self._reference([*reads, *makes])
        if not known.keys() >= {*reads, *makes}:
            return False
        values.save(part.inputs, {name: known[name] for name in reads})
        values.save(part.expected, {name: known[name] for name in makes})
        try:
            subject.operate(
                "cut",
                path=self._opened.path,
                nodes=list(nodes),
                inputs=str(part.inputs),
                expected=str(part.expected),
                target=str(part.model),
            )
        except ModelError:  # cut at what is no tensor: another cut may do
            return False
        return True

    def _reference(self, tensors: list[str]) -> dict[str, Value]:
        """Return what the reference has of some tensors; of a small model of all, asked once."""
        if self._all.keys() >= set(tensors):
            return self._all
        graph = self._opened.graph
        every = [tensor for node in graph.nodes for tensor in node.outputs]
        is_small = not self._all and len(list(groups_of(every, graph.sizes))) == 1
        subject, known = self._subject, values.load(self._inputs)
        wanted = [name for name in (every if is_small else tensors) if name not in known]
        path = str(subject.folder / "part-tapped.onnx")
        subject.operate("tap", path=self._opened.path, tensors=wanted, target=path)
        known |= subject.expected(path, self._inputs, subject.folder / "part-tapped.npz")
        if is_small:
            self._all = known
        return known

    def _ask(self) -> Found:
        subject, part = self._subject, self._part
        target = subject.folder / "part-given.npz"
        reply, actual = subject.given(str(part.model), part.inputs, target)
        if not actual:
            _, numerics, reason = judge(reply)
            return Found(numerics, reason=reason)
        return self._compared(values.load(part.expected), actual)

    def _is_sound(self) -> bool:
        """Return whether the reference gives the expected outputs of the sub-model alone."""
        subject, part = self._subject, self._part
        target = subject.folder / "part-again.npz"
        actual = subject.expected(str(part.model), part.inputs, target)
        return self._compared(values.load(part.expected), actual).numerics == "equal"

    def _compared(self, expected: dict[str, Value], actual: dict[str, Value]) -> Found:
        tolerance = self._subject.tolerance
        outputs = measure_all(expected, actual, tolerance.rtol, tolerance.atol)
        numerics: Numerics = "equal"
        for each in outputs:
            numerics = worse(numerics, each.numerics)
        return Found(numerics, outputs, "; ".join(each.reason for each in outputs if each.reason))


def boundary(
    graph: Graph, nodes: Sequence[str], outputs: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return which tensors some nodes read from outside, and which of theirs are read there.

    Args:
        graph: The whole.
        nodes: Names of the nodes.
        outputs: Outputs of the whole.
    """
    wanted = set(nodes)
    inside = [node for node in graph.nodes if node.name in wanted]
    outside = [node for node in graph.nodes if node.name not in wanted]
    made = _unique(inside, lambda node: node.outputs)
    read = _unique(inside, lambda node: node.inputs)
    needed = {*outputs, *_unique(outside, lambda node: node.inputs)}
    inner = set(made)
    return [name for name in read if name not in inner], [name for name in made if name in needed]


def _unique(
    nodes: Sequence[GraphNode], tensors: Callable[[GraphNode], tuple[str, ...]]
) -> list[str]:
    return list(dict.fromkeys(name for node in nodes for name in tensors(node)))
