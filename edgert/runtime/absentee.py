"""Speaks for a worker that is away while others of its stage do its work.

What the dead process had is left undone, slot by slot, for its writer, which gives it to the others
(``RingWriter.deal_again``); gaps and the ends of streams are passed on, since whoever puts the
frames of the workers in order waits for each of them. A frame that had been passed on in part is
made again: who has it already takes the second for nothing.

It lives in the supervisor, which never waits for a worker, and goes when that is started again.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgert.plan.structs import Plan, StagePlan
from edgert.runtime.outbox import Outbox
from edgert.runtime.wiring import Fds, Wiring
from edgert.transport.edge import EdgeWriter
from edgert.transport.ledger import (
    SLOT_BACK,
    SLOT_READY,
    SLOT_SUSPECT,
    StageBlock,
)
from edgert.transport.reader import RingReader
from edgert.transport.recovery import Frame, recover
from edgert.transport.ring import RingPlan
from edgert.transport.segment import map_segment
from edgert.transport.slot import frame_of
from edgert.transport.token import END, FRAME, GAP

_TOKENS_AT_ONCE = 256


class Absentee:
    """Stands in for one worker of several, of one stage.

    Args:
        plan: The plan of the run.
        stage: The worker's stage; one of several has no other.
        fds: Every fd of the run.
        set_aside: Frames that are not tried again.
    """

    def __init__(self, plan: Plan, stage: StagePlan, fds: Fds, set_aside: set[Frame]) -> None:
        wiring = Wiring(plan, fds, frozenset())
        self._stage = stage
        self._block = wiring.ledger.stage(stage.name)
        self._outputs = [
            (ring, tuple(_edge_writers(ring, wiring, fds)))
            for ring in plan.rings
            if ring.writer == stage.name
        ]
        self._finish_begun(fds)
        in_flight = {
            stream: wiring.ledger.stream(plan.streams[stream]).in_flight()
            for stream in stage.streams
        }
        self._readers = [wiring.reader(edge) for edges in stage.inputs.values() for edge in edges]
        for reader in self._readers:
            recover(reader, self._block, in_flight, set_aside)
        self._ends_missing = {(r, stream) for r in self._readers for stream in r.streams}
        self.fds = tuple(reader.ready_fd for reader in self._readers)

    @property
    def has_unsent(self) -> bool:
        """Whether a pipe was full: then ``step`` is due soon."""
        return any(box.unsent for box in self._boxes())

    @property
    def has_ended(self) -> bool:
        """Whether every stream has ended: there is no work left to come back for."""
        return not self._ends_missing

    def step(self) -> bool:
        """Deal with what waits; whether frames were left undone."""
        for box in self._boxes():
            box.send_again()
        return sum(self._drain(reader) for reader in self._readers) > 0

    def _drain(self, reader: RingReader) -> bool:
        found = False
        for _ in range(_TOKENS_AT_ONCE):
            had_died = reader.retries > 0
            token = reader.receive_nowait()
            if token is None:
                break
            sequence, slot, stream, kind, reason = token
            if kind == FRAME:
                reader.hand_back(slot, SLOT_SUSPECT if had_died else SLOT_BACK)
                found = True
            elif kind == GAP:
                self._say_gap(stream, sequence, reason)
            elif kind == END:
                self._note_end(reader, stream)
        return found

    def _note_end(self, reader: RingReader, stream: int) -> None:
        self._ends_missing.discard((reader, stream))
        if not any(stream == other for _, other in self._ends_missing):
            for ring, writers in self._outputs:
                for plan, edge in zip(ring.edges, writers, strict=True):
                    if stream in plan.streams:
                        edge.send_end(stream)

    def _say_gap(self, stream: int, sequence: int, reason: int) -> None:
        for ring, writers in self._outputs:
            told = set()
            for plan, edge in zip(ring.edges, writers, strict=True):
                way = plan.shared or plan.name  # of workers of one stage, one hears of it
                if stream in plan.streams and way not in told:
                    told.add(way)
                    edge.send_gap(stream, sequence, reason)

    def _finish_begun(self, fds: Fds) -> None:
        """Have every frame that was being passed on either passed on, or not begun."""
        words = self._block.words
        for stream in self._stage.streams:
            at = stream * StageBlock.MARKS
            begun, done = words[StageBlock.BEGUN + at], words[StageBlock.DONE + at]
            sequence, reason = (begun >> 2) - 1, begun & 3
            if begun == done:
                continue
            if reason:
                self._say_gap(stream, sequence, reason)
            untold = sum(not _is_told(*each, fds, (stream, sequence)) for each in self._outputs)
            if reason or not untold:
                words[StageBlock.DONE + at] = begun
            else:
                words[StageBlock.BEGUN + at] = done

    def _boxes(self) -> Iterator[Outbox]:
        for _, writers in self._outputs:
            for writer in writers:
                if isinstance(writer.ready, Outbox):
                    yield writer.ready


def _edge_writers(ring: RingPlan, wiring: Wiring, fds: Fds) -> Iterator[EdgeWriter]:
    for edge in ring.edges:
        key = f"edge/{edge.name}"
        box = Outbox(fds[f"{key}/r"], fds[f"{key}/w"])
        yield EdgeWriter(edge, box, wiring.ledger.edge(edge.name))


def _is_told(ring: RingPlan, edges: tuple[EdgeWriter, ...], fds: Fds, frame: Frame) -> bool:
    """Tell those once more that may have been told of a frame; whether everybody has been."""
    memory = map_segment(fds[f"ring/{ring.name}/read"], writable=False)
    slots = [slot for slot in range(ring.slots) if frame_of(memory, ring.layout, slot) == frame]
    ways: dict[str, bool] = {}
    for plan, edge in zip(ring.edges, edges, strict=True):
        way = plan.shared or plan.name
        ready = [slot for slot in slots if edge.states[slot] == SLOT_READY]
        for slot in ready:
            edge.send_again(slot, *frame)
        ways[way] = ways.get(way, False) or bool(ready) or edge.was_last(*frame)
    return all(ways.values())
