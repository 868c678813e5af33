"""The writer's end towards a stage that runs as several workers: each frame goes to one of them.

The choice is the writer's and not a common pipe's, because with a common pipe whoever is idle takes
the next frame: a device of 20 ms beside one of 10 ms then takes every second frame of a camera that
the fast one alone would keep up with. What the writer must know stands in the ledger; each worker
has an edge of its own, so that the account of every edge adds up as ever.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from edgert.transport.balance import Seen, Standing, choose, in_order, look, tried
from edgert.transport.edge import EdgeWriter
from edgert.transport.ledger import EdgeBlock, StageBlock


class Replica:
    """One of the workers, as the writer of a frame sees it.

    Args:
        edge: The writer's edge to it.
        stage: Its place in the ledger.
        edges: Every edge that leads to it: other writers may give it frames, too.
    """

    def __init__(self, edge: EdgeWriter, stage: StageBlock, edges: Sequence[EdgeBlock]) -> None:
        self.edge = edge
        self._words = stage.words
        self._edges = tuple(edges)

    def seen(self) -> Seen:
        """Return what the ledger shows of it."""
        blocks = self._edges
        done = lost = under_way = 0
        for block in blocks:
            done += block.words[EdgeBlock.PROCESSED]
            lost += block.words[EdgeBlock.LOST]
            under_way += block.under_way()
        words = self._words
        return Seen(done, lost, under_way, words[StageBlock.PACE], bool(words[StageBlock.AWAY]))


class Dispatcher:
    """Chooses one of several edges for each frame.

    Args:
        replicas: The workers, in the plan's order.
    """

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._replicas = tuple(replicas)
        self.edges = tuple(replica.edge for replica in replicas)
        self._standings = [Standing()] * len(replicas)

    def next_edge(self) -> EdgeWriter:
        """Return the edge to the worker that is expected to finish the next frame first."""
        now_ns = time.monotonic_ns()
        seen = [replica.seen() for replica in self._replicas]
        standings = self._standings = [
            look(standing, each, now_ns)
            for standing, each in zip(self._standings, seen, strict=True)
        ]
        chosen = choose(standings, seen, now_ns)
        if not in_order(standings[chosen], seen[chosen]):
            standings[chosen] = tried(standings[chosen], now_ns)
        return self._replicas[chosen].edge

    def send_last(self, stream: int) -> None:
        """Tell every worker that it gets no more, unless one of the others dies."""
        for replica in self._replicas:
            replica.edge.tell_last(stream)

    def send_end(self, stream: int) -> None:
        """Tell every worker that a stream has ended."""
        for replica in self._replicas:
            replica.edge.send_end(stream)
