"""Layer by layer: every tensor inside of a model by both devices, and where they part.

The tensors are asked for in groups, each in a copy of the model that gives them as further outputs,
so that a large model needs no more memory than a group. A group that a device does not take is
halved: in the end one tensor is missing, not all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from edgert.coverage.comparison.figures import measure, measure_all, noise_db, worse
from edgert.coverage.comparison.record import Figures, Layer, Layers
from edgert.coverage.comparison.subject import Subject
from edgert.coverage.graph import Graph
from edgert.coverage.record import Numerics
from edgert.coverage.run import judge

GROUP_BYTES = 64 << 20
GROUP_TENSORS = 128
_UNKNOWN_BYTES = 4 << 20
_WORST = 10
_MOST_REFUSALS = 24  # halving one bad tensor out of a full group takes half as many
OnStep = Callable[[str], None]


class Opened(msgspec.Struct, frozen=True):
    """A model that can be looked into.

    Attributes:
        path: The copy that is cut and tapped.
        graph: Its graph.
        outputs: Its outputs.
    """

    path: str
    graph: Graph
    outputs: list[str]


def open_up(subject: Subject) -> Opened:
    """Make a copy of a model that can be looked into."""
    target = str(subject.folder / "opened.onnx")
    found = subject.operate("open_up", path=subject.work.path, target=target)
    return msgspec.convert({"path": target, **_mapping(found)}, Opened)


def look(subject: Subject, opened: Opened, sample: str, inputs: Path, on_step: OnStep) -> Layers:
    """Compare every tensor of a model on one sample.

    Args:
        subject: The model between two devices.
        opened: The model that can be looked into.
        sample: Name of the sample.
        inputs: File of its inputs.
        on_step: Told what goes on.

    Raises:
        ModelError: The reference computes nothing.
    """
    looking = _Looking(subject, opened, inputs, on_step)
    tensors = [tensor for node in opened.graph.nodes for tensor in node.outputs]
    for group in groups_of(tensors, opened.graph.sizes):
        looking.look(group)
    layers = list(_layers(opened.graph, looking.found))
    return Layers(
        sample=sample,
        layers=layers,
        first=first_of(opened.graph, looking.found),
        worst=worst_of(layers),
        outputs=looking.outputs,
        groups=looking.groups,
    )


def groups_of(tensors: Sequence[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield tensors in groups of bounded size."""
    group: list[str] = []
    total = 0
    for tensor in tensors:
        size = sizes.get(tensor, _UNKNOWN_BYTES)
        if group and (total + size > GROUP_BYTES or len(group) == GROUP_TENSORS):
            yield group
            group, total = [], 0
        group.append(tensor)
        total += size
    if group:
        yield group


def first_of(graph: Graph, found: Mapping[str, Figures]) -> str:
    """Return the first tensor beyond tolerance whose node was fed within it; empty for none."""
    beyond = {tensor for tensor, each in found.items() if each.numerics == "differs"}
    for node in graph.nodes:
        here = [tensor for tensor in node.outputs if tensor in beyond]
        if here and not beyond.intersection(node.inputs):
            return here[0]
    return ""


def worst_of(layers: Sequence[Layer]) -> list[str]:
    """Return the tensors with the most noise, the worst first; those without any are left out."""
    noisy = [each.figures for each in layers if noise_db(each.figures) > float("-inf")]
    noisy.sort(key=noise_db, reverse=True)
    return [each.tensor for each in noisy[:_WORST]]


class _Looking:
    """The groups that have been looked at so far."""

    def __init__(self, subject: Subject, opened: Opened, inputs: Path, on_step: OnStep) -> None:
        self._subject = subject
        self._opened = opened
        self._inputs = inputs
        self._on_step = on_step
        self.found: dict[str, Figures] = {}
        self.outputs: Numerics = "not-run"
        self.groups = 0
        self._refusals = 0

    def look(self, group: list[str]) -> None:
        """Ask both for a group of tensors; halve it where the candidate does not take it."""
        subject, folder = self._subject, self._subject.folder
        self._on_step(f"layers: {len(self.found)} of {len(self._opened.graph.nodes)}")
        path = str(folder / "tapped.onnx")
        subject.operate("tap", path=self._opened.path, tensors=group, target=path)
        expected = subject.expected(path, self._inputs, folder / "tapped-expected.npz")
        reply, actual = subject.given(path, self._inputs, folder / "tapped-given.npz")
        self.groups += 1
        self._refusals += not actual
        if not actual and len(group) > 1 and self._refusals <= _MOST_REFUSALS:
            middle = len(group) // 2
            self.look(group[:middle])
            self.look(group[middle:])
            return
        tolerance = subject.tolerance.rtol, subject.tolerance.atol
        reason = "" if actual else judge(reply)[2] or "it gave nothing"
        for tensor in group:
            if tensor in expected and (tensor in actual or reason):
                self.found[tensor] = (
                    Figures(tensor=tensor, numerics="not-run", reason=reason)
                    if reason
                    else measure(tensor, expected[tensor], actual, *tolerance)
                )
        own = {name: expected[name] for name in self._opened.outputs if name in expected}
        for each in measure_all(own, actual, *tolerance) if actual else ():
            self.outputs = worse(self.outputs, each.numerics)


def _layers(graph: Graph, found: Mapping[str, Figures]) -> Iterator[Layer]:
    missing = Figures(tensor="", numerics="not-run", reason="it is no tensor, or was not given")
    for depth, node in enumerate(graph.nodes):
        for tensor in node.outputs:
            figures = found.get(tensor, msgspec.structs.replace(missing, tensor=tensor))
            yield Layer(depth=depth, node=node.name, operator=node.operator, figures=figures)


def _mapping(found: object) -> dict[str, object]:
    if not isinstance(found, dict):
        raise TypeError("surgery returned no mapping")
    return found
