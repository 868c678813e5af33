"""Drives a stage that makes several frames at once: collects them, over all of its streams.

    arrivals -> waiting (at most max_size) -> at work (at most `requests` batches) -> in order out

A full batch begins as soon as a request is free. One that is not full begins when its first frame
has waited for the delay, or at once where nothing can join it: all streams have ended, or every
frame that may be in flight is here. Meanwhile, and while every request is busy, it grows. With
several requests the last one is for full batches alone: a batch that is not full would only stand
behind those at work there, and could better grow.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from edgert.errors import EdgertError, FrameFiltered, FrameLostError
from edgert.runtime.nodes.async_node import AsyncNode, Ticket
from edgert.runtime.nodes.company import Company
from edgert.runtime.nodes.node import WAIT_BATCH, WAIT_IN
from edgert.runtime.nodes.outputs import Outputs
from edgert.stages.base import Batching, BatchStage
from edgert.transport.join import Arrival, Join
from edgert.transport.ledger import StageBlock
from edgert.transport.permits import Permits

_LOOK_AGAIN_NS = 2_000_000


class _Batch:
    """Frames that are at work together."""

    __slots__ = ("has_ended", "tickets")

    def __init__(self, tickets: Sequence[Ticket]) -> None:
        self.tickets = tickets
        self.has_ended = False

    def end(self, error: BaseException | None) -> None:
        """Note how all of them ended; from any thread."""
        self.has_ended = True
        for ticket in self.tickets:
            ticket.end(error)


class BatchNode(AsyncNode):
    """Collects frames into batches; commits each frame in its turn.

    Args:
        stage: The stage, open.
        block: Its place in the ledger.
        outputs: Its rings.
        join: Where its frames come from.
        batching: How they are collected.
        may_come: Stream -> its frames that may be in flight.
        permits: Its turns at a device that has a limit, one a batch; None where it has none.
        company: The other workers of its stage; None where there are none.
    """

    def __init__(  # noqa: PLR0913, PLR0917  a node's four, and the two that batches need
        self,
        stage: BatchStage,
        block: StageBlock,
        outputs: Outputs,
        join: Join,
        batching: Batching,
        may_come: Mapping[int, int],
        permits: Permits | None = None,
        company: Company | None = None,
    ) -> None:
        super().__init__(stage, block, outputs, join, permits)
        self._stage = stage
        self._batching = batching
        self._capacity = batching.max_size * (batching.requests + 1)
        self._waiting: list[Ticket] = []
        self._at_work: list[_Batch] = []
        self._may_come = dict(may_come)  # of the streams that have not ended
        self._company = company
        self._here: Counter[int] = Counter()  # frames of each stream, waiting or at work

    def step(self) -> bool:
        """Deliver and receive what there is; then begin a batch, if it is time."""
        return super().step() or self._begin_if_due()

    def _has_room(self) -> bool:
        return super()._has_room() and len(self._waiting) < self._batching.max_size

    def _start(self, arrival: Arrival) -> None:
        ticket = self._admit(arrival)
        self._block.record(WAIT_IN, max(0, ticket.start_ns - self._since_ns))
        self._since_ns = ticket.start_ns
        self._here[arrival.stream] += 1
        try:
            self._stage.require_fit(ticket.samples)
        except FrameLostError as error:
            ticket.end(error)
        else:
            self._waiting.append(ticket)

    def _note_ends(self, streams: Sequence[int]) -> None:
        super()._note_ends(streams)
        for stream in streams:
            self._may_come.pop(stream, None)

    def _begin_if_due(self) -> bool:
        self.due_ns = 0
        if not self._waiting or not self._has_request():
            return False
        if not self._is_full() and not self._nothing_can_join():
            due_ns = self._waiting[0].start_ns + self._batching.max_delay_ns
            now_ns = time.monotonic_ns()
            if now_ns < due_ns:
                # Nobody tells what another worker has been given.
                self.due_ns = min(due_ns, now_ns + _LOOK_AGAIN_NS) if self._company else due_ns
                return False
        if not super()._has_turn():
            return False
        self._begin()
        return True

    def _has_turn(self) -> bool:
        return True  # to be collected; a batch takes its turn when it begins

    def _under_way(self) -> int:
        return sum(not batch.has_ended for batch in self._at_work)

    def _is_full(self) -> bool:
        return len(self._waiting) >= self._batching.max_size

    def _has_request(self) -> bool:
        self._at_work = [batch for batch in self._at_work if not batch.has_ended]
        requests = self._batching.requests
        return len(self._at_work) < (requests if self._is_full() else max(1, requests - 1))

    def _nothing_can_join(self) -> bool:
        if self._join.is_retrying:
            return True
        if self._company is not None:
            return self._company.has_all()
        here = self._here
        return all(here[stream] >= most for stream, most in self._may_come.items())

    def _begin(self) -> None:
        tickets, self._waiting = self._waiting, []
        now_ns = time.monotonic_ns()
        for ticket in tickets:
            self._block.record(WAIT_BATCH, now_ns - ticket.start_ns)
            ticket.start_ns = now_ns
        self._note_oldest()
        batch = _Batch(tickets)
        self._at_work.append(batch)

        def done(error: BaseException | None) -> None:
            batch.end(error)
            os.eventfd_write(self._wake_fd, 1)

        frames = [(ticket.samples, ticket.loans) for ticket in tickets]
        try:
            room = self._stage.start_batch(frames, done)
        except (FrameLostError, FrameFiltered) as error:
            done(error)
        except Exception as error:  # noqa: BLE001  told by _finish, when the frames before are out
            done(error)
        else:
            self._count(len(tickets), room)

    def _note_oldest(self) -> None:
        super()._note_oldest()
        if self._waiting and self._tickets[0] is self._waiting[0]:
            self._words[StageBlock.BUSY] = 0  # it waits for others: that is no hang

    def _count(self, frames: int, room: int) -> None:
        words = self._words
        words[StageBlock.BATCHES] += 1
        words[StageBlock.BATCH_FRAMES] += frames
        words[StageBlock.BATCH_PADDING] += room - frames

    def _finish(self, ticket: Ticket) -> None:
        arrival = ticket.arrival
        if not arrival.reason:
            self._here[arrival.stream] -= 1
        error = ticket.error
        if error is None or isinstance(error, (FrameLostError, FrameFiltered)):
            super()._finish(ticket)
        else:
            raise self._lose_all([ticket, *self._same_batch(error)], error) from error

    def _lose_all(self, tickets: Sequence[Ticket], error: BaseException) -> EdgertError:
        """Lose each frame of a batch that failed: each is counted; return what to tell the user."""
        for ticket in tickets[1:]:
            self._tickets.remove(ticket)
        for ticket in tickets:
            self._outputs.put_back(ticket.loans)
        told = [self._fail(ticket.arrival, error) for ticket in tickets]
        return told[0]

    def _same_batch(self, error: BaseException) -> Iterable[Ticket]:
        return [each for each in self._tickets if isinstance(each, Ticket) and each.error is error]
