"""Drives a stage that has several frames in flight and delivers them in order."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence

from edgert.errors import FrameFiltered, FrameLostError
from edgert.runtime.nodes.lending import Lending
from edgert.runtime.nodes.node import WAIT_IN, ReadingNode
from edgert.runtime.nodes.outputs import Outputs
from edgert.stages.base import AsyncStage
from edgert.stages.refusals import PATIENCE_S, refuse_kept_views
from edgert.transport.join import Arrival, Join
from edgert.transport.ledger import StageBlock
from edgert.transport.permits import Permits
from edgert.transport.polling import poll_of
from edgert.transport.slot import Loan, Sample
from edgert.transport.token import FILTERED, LOST


class Ticket:
    """One frame in flight."""

    __slots__ = ("arrival", "captured_ns", "end_ns", "error", "loans", "samples", "start_ns")

    def __init__(self, arrival: Arrival, loans: dict[str, Loan]) -> None:
        self.arrival = arrival
        self.loans = loans
        self.samples: dict[str, Sample] = {}
        self.error: BaseException | None = None
        self.start_ns = time.monotonic_ns()
        self.end_ns = 0
        self.captured_ns = 0

    def end(self, error: BaseException | None) -> None:
        """Note how the frame ended; called once, from any thread."""
        self.error = error
        self.end_ns = time.monotonic_ns()  # last: the loop takes it for the end


class AsyncNode(ReadingNode):
    """Starts frames while the stage has room; commits each when it is done, oldest first.

    Gaps and the ends of streams take their turn behind the frames in flight.

    Args:
        stage: The stage.
        block: Its place in the ledger.
        outputs: Its rings.
        join: Its inputs.
        permits: Its turns at a device that has a limit; None where it has none.
    """

    how_to_write = (
        "Write a tensor before done(), of 0 things too, or end the frame with FrameFiltered"
    )

    def __init__(
        self,
        stage: AsyncStage,
        block: StageBlock,
        outputs: Outputs,
        join: Join,
        permits: Permits | None = None,
    ) -> None:
        super().__init__(stage, block, outputs, join)
        self._permits = permits
        self._lending: Lending | None = None
        self._held_back: Arrival | None = None  # it waits for its turn
        self._async_stage = stage
        self._capacity = stage.capacity
        self._tickets: deque[Ticket | int] = deque()  # an int is a stream that ends here
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._wake_poll = poll_of((self._wake_fd,))

    def step(self) -> bool:
        """Deliver what is done, then start what can be started."""
        delivered = self._deliver()
        if self._permits:
            self._permits.keep(self._under_way() + self._lent())
        if not self._has_room() or self._is_held_back() or not self._has_loans():
            return delivered
        arrival = self._held_back or self._join.receive_nowait()
        self._held_back = None
        if arrival is not None and arrival.reason:
            self._pass_on_in_order(arrival)
        elif arrival is not None and not self._has_turn():
            self._held_back = arrival
            return delivered
        elif arrival is not None:
            self._start(arrival)
        ended = self._join.streams_ended()
        if ended:
            self._note_ends(ended)
        elif arrival is None:
            all_told = self._outputs.send_ends()
            self.finished = all_told and not self._tickets and self._join.ended
        return delivered or arrival is not None or bool(ended)

    def lend(self, lending: Lending | None) -> None:
        """Let a frame be inferred alone and lent to an heir; None: that is over."""
        self._lending = lending
        self.due_ns = 0

    def settle(self) -> bool:
        """Deliver what is done; whether nothing is at work."""
        self._deliver()
        return not self._under_way()

    def wait_fds(self) -> Sequence[int]:
        """Wait for a frame that is done, and for whatever lets another begin."""
        self._drain_wake_fd()
        if self._can_deliver():
            return ()
        if not self._has_room() or self._held_back or self._is_held_back():
            return (self._wake_fd, *self._permit_fds())
        outputs = self._outputs
        waited = outputs.free_fds if self._lacks_loan else (*self._join.fds, *outputs.end_fds())
        return (self._wake_fd, *self._permit_fds(), *waited)

    def _has_room(self) -> bool:
        """Frames with which a worker has died come singly: a second death shows whose fault."""
        count = len(self._tickets)
        if not count or count >= self._capacity:
            return not count
        return not self._join.is_retrying

    def _is_held_back(self) -> bool:
        """Whether no frame may begin for the sake of one that is lent."""
        lending = self._lending
        if lending is None:
            return False
        if lending.is_over:
            self.lend(None)
            return False
        self.due_ns = lending.due_ns
        return lending.holds_back(self._under_way())

    def _lent(self) -> int:
        """Return how many inferences the heir makes in our turn."""
        return 1 if self._lending is not None and self._lending.is_held else 0

    def _has_turn(self) -> bool:
        """Take a permit for a frame that is to start, where the device has a limit."""
        return self._permits is None or self._permits.take()

    def _under_way(self) -> int:
        """Return how many inferences have begun and not ended."""
        return sum(isinstance(each, Ticket) and not each.end_ns for each in self._tickets)

    def _permit_fds(self) -> Sequence[int]:
        return self._permits.fds if self._permits else ()

    def _drain_wake_fd(self) -> None:
        if self._wake_poll(0):
            os.eventfd_read(self._wake_fd)

    def _start(self, arrival: Arrival) -> None:
        ticket = self._admit(arrival)
        self._block.record(WAIT_IN, max(0, ticket.start_ns - self._since_ns))

        def done(error: BaseException | None) -> None:
            ticket.end(error)
            os.eventfd_write(self._wake_fd, 1)

        if self._lending is not None:
            self._lending.begin(ticket, ticket.samples)
        try:
            self._async_stage.start(ticket.samples, ticket.loans, done)
        except (FrameLostError, FrameFiltered) as error:
            done(error)
        except BaseException as error:
            self._tickets.pop()
            self._outputs.put_back(ticket.loans)
            raise self._fail(arrival, error) from error
        self._since_ns = time.monotonic_ns()

    def _admit(self, arrival: Arrival) -> Ticket:
        """Give a frame its loans and its turn."""
        loans = self._outputs.give_up_loans()
        # Of the frames that had this memory before.
        refuse_kept_views(self.stage.context.place, arrival.held, loans, PATIENCE_S)
        samples = self._samples(arrival)
        first = samples[self._order[0]]
        for loan in loans.values():
            loan.inherit(first)
        ticket = Ticket(arrival, loans)
        ticket.samples = samples
        self._begin_work(arrival)
        if self.is_leaf:
            ticket.captured_ns = first.header.captured_ns
        self._tickets.append(ticket)
        self._note_oldest()
        return ticket

    def _pass_on_in_order(self, arrival: Arrival) -> None:
        ticket = Ticket(arrival, {})
        ticket.end_ns = ticket.start_ns
        self._tickets.append(ticket)

    def _note_ends(self, streams: Sequence[int]) -> None:
        self._tickets.extend(streams)

    def _note_oldest(self) -> None:
        """Note since when the oldest frame is in flight: one that does not end is found by that."""
        first = self._tickets[0] if self._tickets else 0
        self._words[StageBlock.BUSY] = first.start_ns if isinstance(first, Ticket) else 0

    def _can_deliver(self) -> bool:
        if not self._tickets:
            return False
        first = self._tickets[0]
        return isinstance(first, int) or bool(first.end_ns)

    def _deliver(self) -> bool:
        delivered = False
        while self._can_deliver():
            first = self._tickets.popleft()
            if isinstance(first, int):
                self._end_stream(first)
            else:
                self._finish(first)
            delivered = True
        if delivered:
            self._note_oldest()
        return delivered

    def _finish(self, ticket: Ticket) -> None:
        arrival, outputs = ticket.arrival, self._outputs
        if self._lending is not None:
            self._lending.end(ticket, is_good=ticket.error is None and not arrival.reason)
        stream, sequence = arrival.stream, arrival.sequence
        if ticket.error is None and not arrival.reason:
            self._written.require(ticket.loans, sequence)
            outputs.commit(ticket.loans, stream, sequence)
            if self.is_leaf:
                self._book_latency(ticket.captured_ns, ticket.end_ns)
            self._book(ticket.start_ns, ticket.end_ns)
            self._release(arrival, arrival.reason)
            return
        outputs.put_back(ticket.loans)
        reason = arrival.reason
        if isinstance(ticket.error, FrameFiltered):
            self._words[StageBlock.FILTERED] += 1
            reason = FILTERED
        elif isinstance(ticket.error, FrameLostError):
            self._lose(ticket.error, stream, sequence)
            reason = LOST
        elif ticket.error is not None:
            raise self._fail(arrival, ticket.error) from ticket.error
        self._pass_on_gap(arrival, reason)
