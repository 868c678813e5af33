"""Order, cycles and streams of graphs, also of graphs that hypothesis makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds import corpus_kinds

from edgert.pipeline.graph import cycles, edges, order, streams, upstream
from edgert.pipeline.spec import PipelineSpec

KINDS = corpus_kinds()
CAMERA = KINDS.contract("test.camera")
COUNT = KINDS.contract("test.count")


def graph(reads: dict[str, list[str]]) -> PipelineSpec:
    stages = {
        name: {"kind": "x", "inputs": {"frames": [f"{other}.image" for other in others]}}
        if others
        else {"kind": "x"}
        for name, others in reads.items()
    }
    return PipelineSpec.model_validate({"version": 1, "name": "x", "stages": stages})


def test_edges_come_in_the_order_of_the_file() -> None:
    found = [(edge.reader, edge.link.source, edge.index) for edge in edges(graph(DIAMOND))]
    assert found == [
        ("sink", "left.image", 0),
        ("sink", "right.image", 1),
        ("right", "camera.image", 0),
        ("left", "camera.image", 0),
    ]


DIAMOND = {"sink": ["left", "right"], "right": ["camera"], "left": ["camera"], "camera": []}


def test_a_stage_comes_after_those_it_reads() -> None:
    assert order(graph(DIAMOND)) == ("camera", "right", "left", "sink")


def test_a_cycle_has_no_order() -> None:
    with pytest.raises(ValueError, match="a cycle among a, b, c"):
        order(graph({"a": ["b"], "b": ["a"], "c": ["b"], "d": []}))


def test_cycles_are_named_along_the_edges_from_their_first_stage() -> None:
    spec = graph({"d": ["c"], "a": ["c"], "b": ["a"], "c": ["b"], "x": ["y"], "y": ["x", "d"]})
    assert cycles(spec) == [("a", "b", "c"), ("x", "y")]


def test_edges_from_nowhere_and_to_itself_are_no_cycles() -> None:
    spec = graph({"a": ["a", "nowhere"], "b": ["a"]})
    assert cycles(spec) == []
    assert upstream(spec) == {"a": [], "b": ["a"]}


def test_streams_reach_through_the_graph_in_the_order_of_the_file() -> None:
    spec = graph({"two": [], "one": [], "join": ["one", "two"], "side": ["one"], "end": ["join"]})
    contracts = dict.fromkeys(spec.stages, COUNT) | {"one": CAMERA, "two": CAMERA}
    assert streams(spec, contracts) == {
        "two": ("two",),
        "one": ("one",),
        "join": ("two", "one"),
        "side": ("one",),
        "end": ("two", "one"),
    }


def test_streams_of_a_cycle_come_to_an_end() -> None:
    spec = graph({"camera": [], "a": ["b", "camera"], "b": ["a"]})
    assert set(streams(spec, {"camera": CAMERA})) == {"camera", "a", "b"}


NAMES = [f"s{number}" for number in range(8)]


@given(st.fixed_dictionaries({n: st.lists(st.sampled_from(NAMES), max_size=3) for n in NAMES}))
def test_a_graph_has_an_order_or_cycles(reads: dict[str, list[str]]) -> None:
    spec = graph(reads)
    wanted = upstream(spec)
    found = cycles(spec)
    for cycle in found:
        for reader, writer in zip([*cycle[1:], cycle[0]], cycle, strict=True):
            assert writer in wanted[reader]
    if not found:
        place = {name: number for number, name in enumerate(order(spec))}
        assert len(place) == len(NAMES)
        assert all(place[o] < place[n] for n, others in wanted.items() for o in others)


def test_a_long_chain_is_no_problem() -> None:
    names = [f"s{number}" for number in range(3000)]
    spec = graph({name: names[max(0, n - 1) : n] for n, name in enumerate(names)})
    assert order(spec) == tuple(names)
