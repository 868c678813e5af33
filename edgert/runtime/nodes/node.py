"""A node drives one stage: it moves tokens and slots around the stage's ``process``.

Nodes of one process take turns in ``loop.py``. Each step does what can be done without waiting.
Loans are taken before inputs are received: with several workers the other order deadlocks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from typing import ClassVar

from edgert.errors import DeviceLostError, EdgertError, FrameLostError, StageError
from edgert.runtime.nodes.outputs import Outputs
from edgert.stages.base import Stage
from edgert.stages.raised import named, raised
from edgert.stages.refusals import Written
from edgert.transport.join import Arrival, Join, Reader
from edgert.transport.ledger import StageBlock
from edgert.transport.recovery import Frame, recover
from edgert.transport.slot import Sample
from edgert.transport.token import LOST
from edgert.wording import counted

SERVICE, WAIT_IN, WAIT_OUT, LATENCY, WAIT_BATCH = range(5)
PACE_OVER = 4  # frames: few, so that a device that recovers is known after few trials


class Node:
    """What all nodes share: a stage, its place in the ledger, its outputs."""

    how_to_write: ClassVar[str]

    def __init__(self, stage: Stage, block: StageBlock, outputs: Outputs) -> None:
        self.stage = stage
        self.finished = False
        self.due_ns = 0  # when the next step has something to do though no fd says so; 0: never
        self.is_leaf = not outputs.free_fds
        self._block = block
        self._words = block.words
        self._outputs = outputs
        self._written = Written(stage.context, self.how_to_write)
        self._since_ns = time.monotonic_ns()
        self._waited_out_ns = 0
        self._lacks_loan = False
        stage.context.on_wait = self._note_wait

    def begin(self) -> None:
        """Count waiting from now on: until here the others were starting, too."""
        self._since_ns = time.monotonic_ns()
        self.deal_again()

    def deal_again(self) -> None:
        """Give frames that a worker behind this stage has left undone to another one."""
        self._outputs.deal_again()

    def step(self) -> bool:
        """Do what can be done now; whether anything was done."""
        raise NotImplementedError

    def wait_fds(self) -> Sequence[int]:
        """Return the fds of which one must be readable for the next step to do anything."""
        raise NotImplementedError

    def stop(self) -> None:
        """Let a source end its stream; others end when their inputs do."""

    def settle(self) -> bool:
        """Finish what is under way, and take no further frame; whether nothing is."""
        return True

    def recover(self, in_flight: Mapping[int, Sequence[int]], set_aside: Set[Frame]) -> None:
        """Go on where a dead worker stopped.

        Args:
            in_flight: Stream -> the frames that its gate still waits for.
            set_aside: Frames with which the stage died twice: not tried again.
        """
        raise NotImplementedError

    def _note_wait(self) -> None:
        """Show life while the stage waits for somebody outside, its frame in work."""
        words = self._words
        words[StageBlock.PROGRESS] = now_ns = time.monotonic_ns()
        if words[StageBlock.BUSY]:
            words[StageBlock.BUSY] = now_ns

    def _has_loans(self) -> bool:
        """Take loans, and book the time without one as waiting for the output."""
        if self._outputs.take_loans():
            if self._lacks_loan:
                self._lacks_loan = False
                now = time.monotonic_ns()
                self._waited_out_ns += now - self._since_ns
                self._since_ns = now
            return True
        if not self._lacks_loan:
            self._lacks_loan = True
            self._since_ns = time.monotonic_ns()
        return False

    def _book(self, start_ns: int, end_ns: int) -> None:
        """Count a processed frame, and its times."""
        words, block = self._words, self._block
        block.record(SERVICE, end_ns - start_ns)
        block.record(WAIT_OUT, self._waited_out_ns)
        self._waited_out_ns = 0
        self._since_ns = end_ns
        words[StageBlock.FRAMES] += 1
        words[StageBlock.PROGRESS] = end_ns
        took_ns = max(0, end_ns - max(start_ns, words[StageBlock.LAST]))
        pace_ns = words[StageBlock.PACE] or took_ns
        words[StageBlock.PACE] = pace_ns + (took_ns - pace_ns) // PACE_OVER
        if not words[StageBlock.FIRST]:
            words[StageBlock.FIRST] = end_ns
        words[StageBlock.LAST] = end_ns
        words[StageBlock.COPIED] = self.stage.context.copied_bytes

    def _book_latency(self, captured_ns: int, end_ns: int) -> None:
        latency = max(0, end_ns - captured_ns)
        self._block.record(LATENCY, latency)
        self._words[StageBlock.LATENCY_MAX] = max(self._words[StageBlock.LATENCY_MAX], latency)

    def _lose(self, why: BaseException, stream: int, sequence: int) -> None:
        """Count a frame that the stage could not make, and say why."""
        self._words[StageBlock.LOST] += 1
        if isinstance(why, FrameLostError) and why.is_said:
            return
        context = self.stage.context
        context.log.warning(
            "%s: stream '%s': frame %d is lost: %s",
            context.place,
            context.streams[stream],
            sequence,
            why,
            extra={"stream": context.streams[stream], "frame": sequence},
        )


class ReadingNode(Node):
    """A node with inputs: what the synchronous and the asynchronous one share."""

    def __init__(self, stage: Stage, block: StageBlock, outputs: Outputs, join: Join) -> None:
        super().__init__(stage, block, outputs)
        self._join = join
        self._order = tuple(port.name for port in join.ports)

    def recover(self, in_flight: Mapping[int, Sequence[int]], set_aside: Set[Frame]) -> None:
        """Go on where a dead worker stopped: frames it had are tried once more, singly."""
        self._outputs.finish_begun(in_flight)
        for port in self._join.ports:
            for reader in port.readers:
                self._take_up(reader, in_flight, set_aside)

    def _take_up(
        self, reader: Reader, in_flight: Mapping[int, Sequence[int]], set_aside: Set[Frame]
    ) -> None:
        for stream in reader.streams:
            reader.start_at(stream, self._block.mark(StageBlock.DONE, stream) >> 2)
        retried = sum(recover(edge, self._block, in_flight, set_aside) for edge in reader.edges)
        if retried:
            context = self.stage.context
            said = counted(retried, "frame")
            context.log.info("%s: %s tried once more", context.place, said)

    def _begin_work(self, arrival: Arrival) -> None:
        """Note which frame is in work: one that its process dies of is known by that."""
        at = StageBlock.WORKING + arrival.stream * StageBlock.MARKS
        self._words[at] = max(self._words[at], arrival.sequence + 1)  # workers of one stage

    def _samples(self, arrival: Arrival) -> dict[str, Sample]:
        held = arrival.held
        return {port: held[port].reader.sample(held[port].slot) for port in self._order}

    def _pass_on_gap(self, arrival: Arrival, reason: int) -> None:
        """Release what a frame has and tell the outputs that it will not come."""
        self._outputs.gap(arrival.stream, arrival.sequence, reason)
        self._release(arrival, reason)

    def _release(self, arrival: Arrival, outcome: int) -> None:
        for held in arrival.held.values():
            held.reader.release(held.slot, outcome)

    def _pass_on_ends(self) -> None:
        for stream in self._join.streams_ended():
            self._end_stream(stream)

    def _end_stream(self, stream: int) -> None:
        with named(type(self.stage), self.stage.context.place, "in end_stream()"):
            self.stage.end_stream(stream)
        self._outputs.end(stream)

    def _fail(self, arrival: Arrival, error: BaseException) -> EdgertError:
        """Count the frame that a stage raised on, and return what to tell the user.

        A frame that a device failed at is not lost yet: the next process tries it again.
        """
        if isinstance(error, DeviceLostError):
            return error
        place, lacks = self.stage.context.place, self._lacks(arrival, error)
        self._words[StageBlock.LOST] += 1
        self._pass_on_gap(arrival, LOST)
        if lacks:
            return StageError(place, lacks)
        return raised(type(self.stage), place, error, f"on frame {arrival.sequence}")

    def _lacks(self, arrival: Arrival, error: BaseException) -> str:
        """Return which tensor was not written for a frame, where a stage failed for the lack of it.

        Else the stage that reads it would be blamed.
        """
        asked = error.args[0] if isinstance(error, KeyError) and error.args else None
        for port, sample in self._samples(arrival).items():
            has_room = any(place.name == asked for place in sample.layout.places)
            if has_room and asked not in sample.tensors:
                writer = arrival.held[port].reader.edges[0].ring.writer
                frame = f"frame {arrival.sequence} came on input '{port}'"
                return f"{frame} without its tensor '{asked}': stage '{writer}' did not write it"
        return ""
