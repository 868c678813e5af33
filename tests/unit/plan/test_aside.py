"""Which edges lead aside, and whose answers the flow gate waits for."""

from __future__ import annotations

from edgert.plan.aside import Aside, Way, find_aside


def ways(*edges: str) -> list[Way]:
    """``a>b`` is an edge, ``a~b`` one that drops."""
    found = []
    for edge in edges:
        writer, reader = edge.replace("~", ">").split(">")
        found.append(Way(edge, writer, reader, "~" in edge))
    return found


def found(edges: list[Way], sources: str, leaves: str) -> Aside:
    """Every stage is reached by the sources that edges lead from."""
    reached: dict[str, set[str]] = {source: {source} for source in sources.split()}
    for _ in edges:
        for way in edges:
            reached.setdefault(way.reader, set()).update(reached.get(way.writer, ()))
    return find_aside(edges, reached, leaves.split())


def test_a_preview_leads_aside() -> None:
    aside = found(ways("src>one", "one>out", "src~draw", "draw>shown"), "src", "out shown")
    assert aside.edges == {"src~draw"}
    assert aside.stages == {"draw", "shown"}
    assert aside.answering == {"src": {"out"}}


def test_a_branch_that_meets_the_main_way_again_does_not() -> None:
    aside = found(ways("src>one", "one>both", "src~both", "both>out"), "src", "out")
    assert aside == Aside(frozenset(), frozenset(), {"src": frozenset({"out"})})


def test_two_edges_that_drop_into_one_join_do_not() -> None:
    aside = found(
        ways("src>out", "src>one", "one>end", "src~both", "one~both"), "src", "out both end"
    )
    assert not aside.edges
    assert aside.answering == {"src": {"out", "both", "end"}}


def test_a_join_that_is_wholly_aside_does() -> None:
    edges = ways("src>out", "src~draw", "draw>one", "one>both", "draw>both")
    aside = found(edges, "src", "out both")
    assert aside.edges == {"src~draw"}
    assert aside.stages == {"draw", "one", "both"}


def test_where_every_leaf_is_aside_all_of_them_answer() -> None:
    aside = found(ways("src~out", "src~shown"), "src", "out shown")
    assert aside == Aside(frozenset(), frozenset(), {"src": frozenset({"out", "shown"})})


def test_a_leaf_may_be_aside_of_one_stream_and_answer_for_another() -> None:
    aside = found(ways("left>out", "right~out", "right>end"), "left right", "out end")
    assert aside.edges == {"right~out"}
    assert aside.answering == {"left": {"out"}, "right": {"end"}}


def test_edges_that_block_never_lead_aside() -> None:
    assert not found(ways("src>one", "one>out", "src>shown"), "src", "out shown").edges
