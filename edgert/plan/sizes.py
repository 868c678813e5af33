"""How many slots a ring needs, so that nothing blocks that need not and nothing deadlocks."""

from __future__ import annotations

from collections.abc import Sequence

from edgert.transport.edge import EdgePlan


def slots_of(edges: Sequence[EdgePlan], writer_holds: int, frames: int | None) -> int:
    """Return the number of slots of a ring.

    The writer fills some while readers hold some and others wait. More than the frames that may be
    in flight, plus the one the writer takes before it knows of a frame, are never used, but for
    those that edges aside keep longer.

    Args:
        edges: Who reads it.
        writer_holds: Loans that the writer has at once.
        frames: Frames that may be in flight on the way of this ring; None aside, where no flow
            gate counts them.
    """
    waiting = max(edge.depth for edge in edges)
    held = sum(edge.held for edge in edges)
    needed = writer_holds + waiting + held
    if frames is None:
        return needed
    kept_aside = sum(edge.depth + edge.held for edge in edges if edge.aside)
    return min(frames + 1 + kept_aside, needed)


def held_by(frames_held: int, in_flight: int, streams: int, *, waits: bool) -> int:
    """Return how many frames of one edge its reader may hold at once.

    A stage that waits for others (it joins several inputs, or puts the frames of replicas in order)
    holds frames of one edge until the other has theirs: that may be every frame in flight.
    """
    return in_flight * streams if waits else frames_held
