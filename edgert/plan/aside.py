"""Which edges lead aside: to stages that the main way neither waits for nor meets again.

An edge that drops leads to a preview or the like. Where every way to the stages behind it goes over
that edge, nobody else needs to hear of a frame that was dropped there, and a slow preview must not
hold the frames of the main way back: its leaves give no answer to the flow gate. A source all of
whose leaves lie behind such edges still waits for them: something must bound its frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec


class Way(msgspec.Struct, frozen=True):
    """An edge as this module sees it.

    Attributes:
        name: Its name.
        writer: Stage that writes.
        reader: Stage that reads.
        drops: Whether its policy is ``drop-oldest``.
    """

    name: str
    writer: str
    reader: str
    drops: bool


class Aside(msgspec.Struct, frozen=True):
    """What lies aside.

    Attributes:
        edges: Names of the edges that lead there.
        stages: The stages behind them.
        answering: Source -> the leaves that answer for its frames.
    """

    edges: frozenset[str] = frozenset()
    stages: frozenset[str] = frozenset()
    answering: dict[str, frozenset[str]] = {}


def find_aside(
    ways: Sequence[Way], sources: Mapping[str, Iterable[str]], leaves: Iterable[str]
) -> Aside:
    """Return what lies aside of the main way.

    Args:
        ways: Every edge.
        sources: Stage -> the sources whose frames reach it.
        leaves: Stages without outputs.
    """
    aside = [way for way in ways if way.drops and _leads_aside(way, ways, sources[way.writer])]
    every_source = {source for found in sources.values() for source in found}
    ends = frozenset(leaves)
    for source in every_source:
        if not _reach_without(source, ways, aside) & ends:
            aside = [way for way in aside if source not in sources[way.writer]]
    return Aside(
        frozenset(way.name for way in aside),
        frozenset(_reach([way.reader for way in aside], ways)),
        {source: ends & _reach_without(source, ways, aside) for source in every_source},
    )


def _reach_without(source: str, ways: Sequence[Way], left_out: Sequence[Way]) -> set[str]:
    return _reach([source], [way for way in ways if way not in left_out])


def _leads_aside(way: Way, ways: Sequence[Way], sources: Iterable[str]) -> bool:
    others = [other for other in ways if other != way]
    return _reach([way.reader], ways).isdisjoint(_reach(sources, others))


def _reach(begin: Iterable[str], ways: Sequence[Way]) -> set[str]:
    """Return the stages that frames come to from those they begin at, these among them."""
    found = set(begin)
    grown = True
    while grown:
        new = {way.reader for way in ways if way.writer in found} - found
        grown = bool(new)
        found |= new
    return found
