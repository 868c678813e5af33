"""Parts, crossings and shares of a placement, against what they mean."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from edgert.coverage.graph import (
    Graph,
    GraphNode,
    crossings,
    placed,
    refused,
    shares,
    tensor_names,
)
from edgert.coverage.record import Node


def chain(*places: str) -> tuple[Graph, dict[str, Node]]:
    """Return a chain of nodes, each reading the tensor of the one before."""
    nodes = [
        GraphNode(
            name=f"n{number}",
            operator=f"Op{number}",
            inputs=(f"t{number}",),
            outputs=(f"t{number + 1}",),
            macs=10,
        )
        for number, _ in enumerate(places)
    ]
    found = {
        node.name: Node(name=node.name, operator=node.operator, placement=place, reason="why")
        for node, place in zip(nodes, places, strict=True)
    }
    return Graph(nodes=nodes, sizes={f"t{number}": 4 for number in range(len(places) + 1)}), found


def test_a_chain_falls_into_parts_where_the_place_changes() -> None:
    graph, found = chain("device", "device", "cpu", "device")
    nodes = placed(graph, found)
    assert [node.partition for node in nodes] == [0, 0, 1, 2]
    assert [(each.tensor, each.to, each.size_bytes) for each in crossings(graph, nodes)] == [
        ("t2", "cpu", 4),
        ("t3", "device", 4),
    ]
    assert shares(nodes) == (0.75, 0.75)
    assert [(each.operator, each.nodes, each.macs) for each in refused(nodes)] == [("Op2", 1, 10)]


def test_a_way_around_the_cpu_does_not_join_two_parts() -> None:
    """device -> cpu -> device with a skip: one part would wait for itself."""
    graph = Graph(
        nodes=[
            GraphNode(name="a", operator="A", inputs=("x",), outputs=("a",)),
            GraphNode(name="b", operator="B", inputs=("a",), outputs=("b",)),
            GraphNode(name="c", operator="C", inputs=("a", "b"), outputs=("c",)),
        ],
        sizes={},
    )
    found = {
        name: Node(name=name, operator=name, placement=place)
        for name, place in (("a", "device"), ("b", "cpu"), ("c", "device"))
    }
    assert [node.partition for node in placed(graph, found)] == [0, 1, 2]


def test_a_tensor_read_twice_on_the_other_side_crosses_once() -> None:
    graph = Graph(
        nodes=[
            GraphNode(name="a", operator="A", outputs=("t",)),
            GraphNode(name="b", operator="B", inputs=("t",)),
            GraphNode(name="c", operator="C", inputs=("t",)),
        ],
        sizes={},
    )
    found = {
        name: Node(name=name, operator=name, placement="device" if name == "a" else "cpu")
        for name in "abc"
    }
    assert [each.tensor for each in crossings(graph, placed(graph, found))] == ["t"]


def test_tensors_of_one_name_are_told_apart() -> None:
    names = tensor_names({0: "x", 1: "y", 2: "", 3: "y"})
    assert names == {0: "x", 1: "y#1", 2: "#2", 3: "y#3"}


def test_what_is_not_known_has_no_share() -> None:
    graph, found = chain("device", "cpu")
    del found["n1"]
    nodes = placed(graph, found)
    assert nodes[1].placement == "unknown"
    assert shares(nodes) == (None, None)
    assert shares([]) == (None, None)


@given(st.lists(st.sampled_from(["device", "cpu"]), min_size=1, max_size=12))
def test_every_change_of_place_is_a_crossing_and_a_part(places: list[str]) -> None:
    graph, found = chain(*places)
    nodes = placed(graph, found)
    changes = sum(a != b for a, b in pairwise(places))
    assert len(crossings(graph, nodes)) == changes
    assert len({node.partition for node in nodes}) == changes + 1
