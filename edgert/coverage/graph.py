"""What a placement of nodes comes to in a graph: parts, crossings with their bytes, shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from edgert.coverage.mends import mend_for
from edgert.coverage.record import Crossing, Node, Refused


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a model's graph, in topological order.

    Attributes:
        name: Unique in the graph.
        operator: Its operator.
        inputs: Tensors it reads, weights left out.
        outputs: Tensors it makes.
        macs: Multiply-accumulates of one inference; None where not known.
    """

    name: str
    operator: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    macs: int | None = None


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """A model's graph.

    Attributes:
        nodes: In topological order.
        sizes: Bytes of each tensor whose shape is known.
    """

    nodes: list[GraphNode]
    sizes: dict[str, int]


def tensor_names(named: Mapping[int, str]) -> dict[int, str]:
    """Return what numbered tensors are called: by their names, where these are one's alone."""
    times = Counter(named.values())
    return {
        number: name if name and times[name] == 1 else f"{name}#{number}"
        for number, name in named.items()
    }


def placed(graph: Graph, found: Mapping[str, Node]) -> list[Node]:
    """Return every node of a graph with its placement and the number of its part.

    Parts are numbered so that no two depend on each other in a circle: a node is in a later part
    than one it reads from where the two are not in the same place.
    """
    makers = {tensor: node.name for node in graph.nodes for tensor in node.outputs}
    steps: dict[str, int] = {}
    parts: dict[tuple[str, int], int] = {}
    nodes = []
    for node in graph.nodes:
        known = found.get(node.name)
        where = known.placement if known else "unknown"
        step = 0
        for before in {makers[tensor] for tensor in node.inputs if tensor in makers}:
            other = found[before].placement if before in found else "unknown"
            step = max(step, steps[before] + (other != where))
        steps[node.name] = step
        part = parts.setdefault((where, step), len(parts))
        nodes.append(
            Node(
                name=node.name,
                operator=node.operator,
                placement=where,
                reason=known.reason if known else "",
                macs=node.macs,
                partition=part,
            )
        )
    return nodes


def crossings(graph: Graph, nodes: Sequence[Node]) -> list[Crossing]:
    """Return the tensors that go from the device to the CPU or back, each way once.

    Of nodes that are not told none is known.
    """
    if not nodes:
        return []
    on_device = {node.name: node.placement == "device" for node in nodes}
    makers = {tensor: node.name for node in graph.nodes for tensor in node.outputs}
    found: dict[tuple[str, bool], None] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            maker = makers.get(tensor)
            if maker is not None and on_device[maker] != on_device[node.name]:
                found[tensor, on_device[node.name]] = None
    return [
        Crossing(
            tensor=tensor, to="device" if to_device else "cpu", size_bytes=graph.sizes.get(tensor)
        )
        for tensor, to_device in found
    ]


def shares(nodes: Sequence[Node]) -> tuple[float | None, float | None]:
    """Return which part of the nodes, and of the MACs, is on the device; None where not known."""
    if not nodes or any(node.placement == "unknown" for node in nodes):
        return None, None
    there = [node for node in nodes if node.placement == "device"]
    of_nodes = round(len(there) / len(nodes), 4)
    if any(node.macs is None for node in nodes):
        return of_nodes, None
    total = sum(node.macs or 0 for node in nodes)
    of_macs = round(sum(node.macs or 0 for node in there) / total, 4) if total else None
    return of_nodes, of_macs


def refused(nodes: Sequence[Node]) -> list[Refused]:
    """Return the operators that are not on the device, the costliest first."""
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        if node.placement in ("cpu", "rejected"):
            groups.setdefault(node.operator, []).append(node)
    found = [_refused(operator, each) for operator, each in groups.items()]
    return sorted(found, key=lambda each: (-each.macs, -each.nodes, each.operator))


def _refused(operator: str, nodes: Sequence[Node]) -> Refused:
    reasons = Counter(node.reason for node in nodes if node.reason)
    reason = reasons.most_common(1)[0][0] if reasons else ""
    return Refused(
        operator=operator,
        nodes=len(nodes),
        macs=sum(node.macs or 0 for node in nodes),
        reason=reason,
        mend=mend_for(operator, reason),
    )
