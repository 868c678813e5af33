"""How many slots a ring needs, so that nothing blocks that need not and nothing deadlocks."""

from __future__ import annotations

from collections.abc import Sequence

from edgert.transport.ring import EdgePlan


def slots_of(edges: Sequence[EdgePlan], writer_holds: int, in_flight: int, streams: int) -> int:
    """Return the number of slots of a ring.

    The writer fills some while readers hold some and others wait. More than the frames that may be
    in flight, plus the one the writer takes before it knows of a frame, are never used.

    Args:
        edges: Who reads it.
        writer_holds: Loans that the writer has at once.
        in_flight: Frames per stream between source and leaves.
        streams: How many streams the ring carries.
    """
    waiting = max(edge.depth for edge in edges)
    held = sum(edge.held for edge in edges)
    return min(in_flight * streams + 1, writer_holds + waiting + held)


def held_by(frames_held: int, joined_ports: int, in_flight: int, streams: int) -> int:
    """Return how many frames of one edge its reader may hold at once.

    A stage that joins several inputs holds frames of one until the other has theirs: on
    re-converging paths that is every frame in flight.
    """
    return in_flight * streams if joined_ports > 1 else frames_held
