"""How many slots a ring needs, so that nothing blocks that need not and nothing deadlocks."""

from __future__ import annotations

from collections.abc import Sequence

from edgert.transport.ring import EdgePlan


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


def held_by(frames_held: int, joined_ports: int, in_flight: int, streams: int) -> int:
    """Return how many frames of one edge its reader may hold at once.

    A stage that joins several inputs holds frames of one until the other has theirs: on
    re-converging paths that is every frame in flight.
    """
    return in_flight * streams if joined_ports > 1 else frames_held
