"""What the workers of one stage have together, as one of them that collects a batch sees it.

A stage of one worker knows from what it holds that no frame can join a batch: every frame that may
be in flight is here. One of several sees only its share; the ledger shows the others', and rings
say which frames those are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgert.plan.structs import StagePlan, WorkerOrder
from edgert.transport.join import Join
from edgert.transport.ledger import ENDED_MARK, SLOT_UNDONE, EdgeBlock, Ledger, StreamBlock
from edgert.transport.reader import RingReader
from edgert.transport.slot import frame_of


class Company:
    """A stage's workers and the frames that may reach them.

    Args:
        rings: A reader of each ring that leads to them, and the edges there, one for each worker.
        streams: The streams that come this way, by number.
    """

    def __init__(
        self,
        rings: Sequence[tuple[RingReader, Sequence[EdgeBlock]]],
        streams: Mapping[int, StreamBlock],
    ) -> None:
        self._rings = tuple(rings)
        self._streams = dict(streams)

    def has_all(self) -> bool:
        """Whether no frame can come before one of the workers is done with one."""
        oldest = self._oldest()
        for number, stream in self._streams.items():
            in_flight = stream.in_flight()
            has_ended = stream.words[StreamBlock.ENDED]
            if not has_ended and len(in_flight) < stream.entries:
                return False
            if in_flight and not self._has_from(number, in_flight, oldest.get(number)):
                return False
        return True

    def _has_from(self, stream: int, in_flight: Sequence[int], oldest: int | None) -> bool:
        """Whether none of these frames is before the stage yet, and none is behind all others."""
        if oldest is None or in_flight[0] < oldest:
            return False  # it is through, and makes room for another when it has left
        blocks = (block for _, blocks in self._rings for block in blocks)
        return in_flight[-1] < max(block.sent(stream) & ~ENDED_MARK for block in blocks)

    def _oldest(self) -> dict[int, int]:
        """Return the oldest frame of each stream that any of the workers has to do yet."""
        found: dict[int, int] = {}
        for reader, blocks in self._rings:
            for slot in range(reader.ring.slots):
                if any(block.states[slot] in SLOT_UNDONE for block in blocks):
                    stream, sequence = frame_of(reader.memory, reader.ring.layout, slot)
                    found[stream] = min(sequence, found.get(stream, sequence))
        return found


def company_of(stage: StagePlan, order: WorkerOrder, join: Join, ledger: Ledger) -> Company | None:
    """Return the company that a worker's stage is in; None where it has no other worker."""
    readers = [edge for port in join.ports for each in port.readers for edge in each.edges]
    rings = [
        (reader, [ledger.edge(edge.name) for edge in reader.ring.edges if edge.shared == shared])
        for reader in readers
        if (shared := reader.plan.shared)
    ]
    if not rings:
        return None
    return Company(rings, {n: ledger.stream(order.streams[n]) for n in stage.streams})
