"""A stand-in for a dead worker: it loses its frames properly, so that all others can go on.

For each stage that ran in it, it receives what the stage would have received, gives the slots
back, and says on every output that the frame will not come. (For each stage, not for the worker:
what a stage sent may come back to another of the same worker.) What the dead one held in its hands
is known from the ledger. What left no trace (a gap or an end that it had received and not passed
on, a frame between pipe and ledger) is made good once every stream has ended before the stage: what
the gates still wait for is lost. Told twice, a frame or an end counts once: gates and joins see to
that.

It lives in the supervisor, which must never wait for a worker: what finds a pipe full is sent
later, and every input gets its turn however fast another one is.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgert.plan.structs import Plan, StagePlan, WorkerPlan
from edgert.runtime.outbox import Outbox
from edgert.runtime.wiring import Fds, Wiring
from edgert.transport.edge import EdgePlan
from edgert.transport.ledger import (
    SLOT_FREE,
    SLOT_HELD,
    SLOT_READY,
    SLOT_RELEASED,
    EdgeBlock,
    Ledger,
)
from edgert.transport.queue import PipeQueue
from edgert.transport.reader import RingReader
from edgert.transport.ring import RingPlan
from edgert.transport.segment import map_segment
from edgert.transport.slot import frame_of
from edgert.transport.token import DONE, END, FRAME, FREE, GAP, LOST, NONE

_TOKENS_AT_ONCE = 256


class _DeadStage:
    """Speaks for one stage.

    Args:
        plan: The stage.
        streams: Names of all streams.
        ledger: The ledger.
        gates: Stream -> where its leaves answer.
    """

    def __init__(
        self,
        plan: StagePlan,
        streams: Sequence[str],
        ledger: Ledger,
        gates: dict[int, Outbox],
    ) -> None:
        self.inputs: list[tuple[RingReader, EdgeBlock]] = []
        self.outputs: list[tuple[Outbox, EdgePlan]] = []
        self.before: set[str] = set()
        self.behind: list[_DeadStage] = []  # and no way back: a cycle would keep rings mapped
        self._plan = plan
        self._streams = streams
        self._ledger = ledger
        self._gates = gates

    def step(self, ended: set[str]) -> None:
        """Deal with the tokens that wait, and with the end once no more will come.

        Args:
            ended: The dead stages that have ended; this one is added in its time.
        """
        all_sent = self.before <= ended and all(
            block.words[EdgeBlock.ENDED] >= len(reader.plan.streams)
            for reader, block in self.inputs
        )
        waiting = [reader for reader, _ in self.inputs if not self._drain(reader)]
        if all_sent and not waiting and self._plan.name not in ended:
            ended.add(self._plan.name)
            self._end()

    def say_gap(self, stream: int, sequence: int, reason: int) -> None:
        """Say to everybody behind the stage that a frame will not come."""
        for box, edge in self.outputs:
            if stream in edge.streams:
                box.send((sequence, 0, stream, GAP, reason))
        for stage in self.behind:
            stage.say_gap(stream, sequence, reason)
        if self._plan.leaf >= 0:
            self._gates[stream].send((sequence, self._plan.leaf, stream, DONE, reason))

    def _drain(self, reader: RingReader) -> bool:
        """Deal with some tokens of one input; whether there are no more."""
        for _ in range(_TOKENS_AT_ONCE):
            token = reader.receive_nowait()
            if token is None:
                return True
            sequence, slot, stream, kind, reason = token
            if kind == FRAME:
                reader.release(slot, LOST)
                self.say_gap(stream, sequence, LOST)
            elif kind == GAP:
                self.say_gap(stream, sequence, reason)
        return False

    def _end(self) -> None:
        """Lose what is still in flight of the streams it received; end all it passed on."""
        if not self._plan.is_source:
            for stream in self._plan.streams:
                for sequence in self._ledger.stream(self._streams[stream]).in_flight():
                    self.say_gap(stream, sequence, LOST)
        for box, edge in self.outputs:
            self._ledger.edge(edge.name).words[EdgeBlock.ENDED] = len(edge.streams)
            for stream in edge.streams:
                box.send((0, 0, stream, END, NONE))


class StandIn:
    """Stands in for one dead worker until every stream has ended.

    Args:
        plan: The plan of the run.
        worker: The dead worker.
        fds: Every fd of the run.
    """

    def __init__(self, plan: Plan, worker: WorkerPlan, fds: Fds) -> None:
        self._fds = fds
        self._ended: set[str] = set()
        self._wiring = Wiring(plan, fds, frozenset())
        gates = {
            number: Outbox(fds[f"gate/{stream}/r"], fds[f"gate/{stream}/w"])
            for number, stream in enumerate(plan.streams)
        }
        self._stages = {
            stage.name: _DeadStage(stage, plan.streams, self._wiring.ledger, gates)
            for stage in worker.stages
        }
        held = [frame for ring in plan.rings for frame in self._take_over(ring)]
        for stage, stream, sequence in held:  # only now is everybody behind it known
            stage.say_gap(stream, sequence, LOST)
        inputs = [reader for stage in self._stages.values() for reader, _ in stage.inputs]
        self.fds = tuple(reader.ready_fd for reader in inputs)
        outputs = [box for stage in self._stages.values() for box, _ in stage.outputs]
        self._boxes = (*outputs, *gates.values())

    @property
    def has_unsent(self) -> bool:
        """Whether a pipe was full: then ``step`` is due soon."""
        return any(box.unsent for box in self._boxes)

    def step(self) -> None:
        """Deal with what waits, stages that write before those that read."""
        for box in self._boxes:
            box.send_again()
        for stage in self._stages.values():
            stage.step(self._ended)

    def _take_over(self, ring: RingPlan) -> list[tuple[_DeadStage, int, int]]:
        """Take over the dead stages' ends of a ring; return the frames they had of it."""
        writer = self._stages.get(ring.writer)
        held = []
        for edge in ring.edges:
            reader = self._stages.get(edge.reader)
            if writer and not reader:
                key = f"edge/{edge.name}"
                box = Outbox(self._fds[f"{key}/r"], self._fds[f"{key}/w"])
                writer.outputs.append((box, edge))
            elif reader and not writer:
                block = self._wiring.ledger.edge(edge.name)
                reader.inputs.append((self._wiring.reader(edge.name), block))
            elif reader and writer:
                writer.behind.append(reader)
                reader.before.add(ring.writer)
            if reader:
                frames = self._let_go(ring, edge, gives_back=not writer)
                held += [(reader, *frame) for frame in frames]
        return held

    def _let_go(self, ring: RingPlan, edge: EdgePlan, *, gives_back: bool) -> list[tuple[int, int]]:
        """Free what the dead worker had in its hands, or between its own stages: those frames."""
        block = self._wiring.ledger.edge(edge.name)
        memory = map_segment(self._fds[f"ring/{ring.name}/read"], writable=False)
        free = PipeQueue(-1, self._fds[f"free/{ring.name}/w"])
        held = []
        for slot in range(len(block.states)):
            stream, sequence = frame_of(memory, ring.layout, slot)
            state = block.states[slot]  # after the frame: RELEASED, nobody writes to it
            if state == SLOT_HELD or (state == SLOT_READY and not gives_back):
                held.append((stream, sequence))
                block.words[block.LOST] += 1
            elif state != SLOT_RELEASED:
                continue
            block.states[slot] = SLOT_RELEASED if gives_back else SLOT_FREE
            if gives_back:  # there is room for every slot
                free.send((sequence, slot, stream, FREE, ring.edges.index(edge)))
        return held
