"""From where each node runs to where the whole does."""

from __future__ import annotations

from collections.abc import Sequence

from edgert.coverage.record import Node, Placement


def placement_of(nodes: Sequence[Node]) -> Placement:
    """Return ``device`` or ``cpu`` if every node is there, ``partly`` if some are on the device.

    Without nodes nothing is proved: ``unknown``.
    """
    found = {node.placement for node in nodes}
    if not found or "unknown" in found:
        return "unknown"
    if found == {"device"}:
        return "device"
    return "partly" if "device" in found else "cpu"
