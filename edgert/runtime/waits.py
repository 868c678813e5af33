"""Who waits for whom: a stage that takes no frame, or lacks one of two, told once per episode.

What is seen is what the ledger shows of an edge. Nothing has moved on it for a while though frames
are on their way, so its reader does not take them, or has taken them and waits for their partners.
A reader that itself waits for room is not to blame: the one that it waits for is.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from edgert.plan.structs import Plan
from edgert.transport.edge import EdgePlan
from edgert.transport.ledger import SLOT_HELD, SLOT_READY, Ledger, StageBlock
from edgert.transport.ring import RingPlan

log = logging.getLogger("edgert.supervisor")

AFTER_S = 10.0
_LOOK_EVERY_S = 0.5


@dataclass(slots=True)
class _Edge:
    """An edge, and since when nothing has moved on it."""

    ring: RingPlan
    plan: EdgePlan
    seen: tuple[object, ...] = ()
    since_s: float = 0.0
    told: bool = False

    @property
    def writer(self) -> str:
        """The stage that writes."""
        return self.ring.writer

    def look(self, ledger: Ledger, now_s: float) -> None:
        """Note whether anything has moved."""
        block = ledger.edge(self.plan.name)
        words = block.words
        seen = (bytes(block.states), *(int(words[n]) for n in range(len(block.names) + 2)))
        if seen != self.seen:
            self.seen, self.since_s, self.told = seen, now_s, False

    def states(self) -> bytes:
        """Return the states of its slots as they were last seen."""
        states = self.seen[0]
        return states if isinstance(states, bytes) else b""

    def frames(self) -> int:
        """Return how many frames the reader has, or are on their way to it."""
        states = self.states()
        return states.count(SLOT_READY) + states.count(SLOT_HELD)

    def is_full(self) -> bool:
        """Whether the writer waits for room here."""
        return self.frames() >= self.ring.slots


class Waits:
    """Looks at every edge now and then, and tells what stands still.

    Args:
        plan: The plan of the run.
        ledger: Its ledger.
        after_s: How long nothing has to move before it is told.
    """

    def __init__(self, plan: Plan, ledger: Ledger, after_s: float = AFTER_S) -> None:
        self._ledger = ledger
        self._after_s = after_s
        self._streams = plan.streams
        self._edges = [_Edge(ring, edge) for ring in plan.rings for edge in ring.edges]
        self._next_s = 0.0
        self.said: list[str] = []

    def step(self, now_s: float) -> None:
        """Look, if it is time, and tell what has begun to stand still since."""
        if now_s < self._next_s:
            return
        self._next_s = now_s + _LOOK_EVERY_S
        for edge in self._edges:
            edge.look(self._ledger, now_s)
        still = [edge for edge in self._edges if self._stands_still(edge, now_s)]
        blocked = {edge.writer for edge in still if edge.is_full()}
        to_blame = [edge for edge in still if edge.plan.reader not in blocked]
        self.said = [self._say(edge, now_s) for edge in to_blame]
        for edge, said in zip(to_blame, self.said, strict=True):
            if not edge.told:
                edge.told = True
                log.warning("%s", said, extra={"stage": edge.plan.reader})

    def _stands_still(self, edge: _Edge, now_s: float) -> bool:
        return bool(edge.frames()) and now_s - edge.since_s >= self._after_s

    def _say(self, edge: _Edge, now_s: float) -> str:
        reader, waited_s = edge.plan.reader, now_s - edge.since_s
        partner = self._partner(edge)
        if partner:
            return (
                f"stage '{reader}' has waited {waited_s:.0f} s for a frame of "
                f"'{partner.ring.name}': it has that of '{edge.ring.name}' already"
            )
        waiting = self._waiting_for(edge)
        verb = "waits" if len(waiting) == 1 else "wait"
        waits = f": {' and '.join(waiting)} {verb} for it" if waiting else ""
        busy_ns = self._ledger.stage(reader).words[StageBlock.BUSY]
        does = "been at one frame" if busy_ns else "not taken a frame"
        return f"stage '{reader}' has {does} of '{edge.ring.name}' for {waited_s:.0f} s{waits}"

    def _waiting_for(self, edge: _Edge) -> list[str]:
        """Return who cannot go on: the writer without room, sources whose gate is full."""
        waiting = {edge.writer} if edge.is_full() else set()
        for number in edge.plan.streams:
            stream = self._ledger.stream(self._streams[number])
            if len(stream.in_flight()) >= stream.entries:
                waiting.add(self._streams[number])
        return [f"'{name}'" for name in sorted(waiting)]

    def _partner(self, edge: _Edge) -> _Edge | None:
        """Return the edge of another input that a reader lacks a frame of."""
        is_busy = self._ledger.stage(edge.plan.reader).words[StageBlock.BUSY]
        if is_busy or SLOT_HELD not in edge.states():
            return None
        others = (
            other
            for other in self._edges
            if other.plan.reader == edge.plan.reader and other.plan.port != edge.plan.port
        )
        return next((other for other in others if not other.frames()), None)
