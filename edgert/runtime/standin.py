"""A stand-in for a dead worker: it loses its frames properly, so that all others can go on.

It receives what the dead worker would have received, gives the slots back, and says on every
output that the frame will not come. What the dead one held in its hands is known from the ledger.
What left no trace (a gap or an end that it had received and not passed on, a frame between pipe and
ledger) is made good once every stream has ended before it: what the gates still wait for is lost.
Told twice, a frame or an end counts once: gates and joins see to that.
"""

from __future__ import annotations

from edgert.plan.structs import Plan, WorkerPlan
from edgert.runtime.wiring import Fds, Wiring
from edgert.transport.ledger import SLOT_FREE, SLOT_HELD, EdgeBlock
from edgert.transport.queue import PipeQueue
from edgert.transport.ring import EdgePlan, RingPlan, RingReader
from edgert.transport.segment import map_segment
from edgert.transport.slot import frame_of
from edgert.transport.token import DONE, END, FRAME, FREE, GAP, LOST, NONE, Token


class StandIn:
    """Stands in for one dead worker until every stream has ended.

    Args:
        plan: The plan of the run.
        worker: The dead worker.
        fds: Every fd of the run.
    """

    def __init__(self, plan: Plan, worker: WorkerPlan, fds: Fds) -> None:
        self._plan = plan
        self._worker = worker
        self._fds = fds
        names = worker.stage_names
        wiring = Wiring(plan, fds, frozenset())
        self._ledger = wiring.ledger
        self._readers: list[tuple[RingReader, EdgeBlock]] = []
        self._outputs: list[tuple[PipeQueue, EdgePlan]] = []
        self._has_ended = False
        self._leaves = {stage.leaf: stage.streams for stage in worker.stages if stage.leaf >= 0}
        self._gates = {stream: wiring.done_queue(stream) for stream in range(len(plan.streams))}
        held: list[tuple[int, int]] = []
        for ring in plan.rings:
            held += self._take_over(ring, wiring, writes=ring.name.partition(".")[0] in names)
        for stream, sequence in held:  # only now is every output known
            self._say_gap(stream, sequence, LOST)
        self.fds = tuple(reader.ready_fd for reader, _ in self._readers)

    def step(self) -> None:
        """Deal with every token that waits, and with the end once no more will come."""
        all_sent = all(
            block.words[EdgeBlock.ENDED] >= len(reader.plan.streams)
            for reader, block in self._readers
        )
        for reader, _ in self._readers:
            while token := reader.receive_nowait():
                self._deal_with(token, reader)
        if all_sent and not self._has_ended:
            self._has_ended = True
            self._end()

    def _take_over(self, ring: RingPlan, wiring: Wiring, *, writes: bool) -> list[tuple[int, int]]:
        """Take over the dead worker's ends of a ring; return the frames it had of it."""
        names = self._worker.stage_names
        held = []
        for edge in ring.edges:
            reads = edge.reader in names
            if writes and not reads:
                key = f"edge/{edge.name}"
                queue = PipeQueue(self._fds[f"{key}/r"], self._fds[f"{key}/w"])
                self._outputs.append((queue, edge))
            if reads and not writes:
                self._readers.append((wiring.reader(edge.name), wiring.ledger.edge(edge.name)))
            if reads:
                held += self._let_go(ring, edge.name, wiring, gives_back=not writes)
        return held

    def _let_go(
        self, ring: RingPlan, edge: str, wiring: Wiring, *, gives_back: bool
    ) -> list[tuple[int, int]]:
        """Free what the dead worker had in its hands, or between its own stages: those frames."""
        block = wiring.ledger.edge(edge)
        memory = map_segment(self._fds[f"ring/{ring.name}/read"], writable=False)
        free = PipeQueue(-1, self._fds[f"free/{ring.name}/w"])
        held = []
        for slot, state in enumerate(bytes(block.states)):
            if state == SLOT_HELD or (state != SLOT_FREE and not gives_back):
                held.append(frame_of(memory, ring.layout, slot))
                block.states[slot] = SLOT_FREE
                block.words[block.LOST] += 1
                if gives_back:
                    free.send((0, slot, 0, FREE, NONE))
        return held

    def _deal_with(self, token: Token, reader: RingReader) -> None:
        sequence, slot, stream, kind, reason = token
        if kind == FRAME:
            reader.release(slot, LOST)
            self._say_gap(stream, sequence, LOST)
        elif kind == GAP:
            self._say_gap(stream, sequence, reason)

    def _say_gap(self, stream: int, sequence: int, reason: int) -> None:
        for queue, edge in self._outputs:
            if stream in edge.streams:
                queue.send((sequence, 0, stream, GAP, reason))
        for leaf, streams in self._leaves.items():
            if stream in streams:
                self._gates[stream].send((sequence, leaf, stream, DONE, reason))

    def _end(self) -> None:
        """Lose what is still in flight of the streams it received; end all it passed on."""
        for stream in {stream for reader, _ in self._readers for stream in reader.plan.streams}:
            for sequence in self._ledger.stream(self._plan.streams[stream]).in_flight():
                self._say_gap(stream, sequence, LOST)
        for queue, edge in self._outputs:
            self._ledger.edge(edge.name).words[EdgeBlock.ENDED] = len(edge.streams)
            for stream in edge.streams:
                queue.send((0, 0, stream, END, NONE))
