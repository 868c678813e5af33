"""Drives a stage that has several frames in flight and delivers them in order."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence

from edgert.errors import FrameFiltered, FrameLostError
from edgert.runtime.node import WAIT_IN, Outputs, ReadingNode
from edgert.stages.base import AsyncStage
from edgert.transport.join import Arrival, Join
from edgert.transport.ledger import StageBlock
from edgert.transport.slot import Loan
from edgert.transport.token import FILTERED, LOST


class Ticket:
    """One frame in flight."""

    __slots__ = ("arrival", "captured_ns", "end_ns", "error", "loans", "start_ns")

    def __init__(self, arrival: Arrival, loans: dict[str, Loan]) -> None:
        self.arrival = arrival
        self.loans = loans
        self.error: BaseException | None = None
        self.start_ns = time.monotonic_ns()
        self.end_ns = 0
        self.captured_ns = 0


class AsyncNode(ReadingNode):
    """Starts frames while the stage has room; commits each when it is done, oldest first."""

    def __init__(self, stage: AsyncStage, block: StageBlock, outputs: Outputs, join: Join) -> None:
        super().__init__(stage, block, outputs, join)
        self._async_stage = stage
        self._capacity = stage.capacity
        self._tickets: deque[Ticket] = deque()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def step(self) -> bool:
        """Deliver what is done, then start what can be started."""
        delivered = self._deliver()
        if len(self._tickets) >= self._capacity or not self._has_loans():
            return delivered
        arrival = self._join.receive_nowait()
        if arrival is None:
            if not self._tickets:
                self._pass_on_ends()
                self.finished = self._join.ended
            return delivered
        if arrival.reason:
            self._pass_on_in_order(arrival)
        else:
            self._start(arrival)
        return True

    def wait_fds(self) -> Sequence[int]:
        """Wait for a frame that is done, and for whatever lets another begin."""
        self._drain_wake_fd()
        if self._tickets and self._tickets[0].end_ns:
            return ()
        if len(self._tickets) >= self._capacity:
            return (self._wake_fd,)
        waited = self._outputs.free_fds if self._lacks_loan else self._join.fds
        return (self._wake_fd, *waited)

    def _drain_wake_fd(self) -> None:
        try:
            os.eventfd_read(self._wake_fd)
        except BlockingIOError:
            return

    def _start(self, arrival: Arrival) -> None:
        samples = self._samples(arrival)
        first = samples[self._order[0]]
        loans = self._outputs.give_up_loans()
        for loan in loans.values():
            loan.inherit(first)
        ticket = Ticket(arrival, loans)
        if self.is_leaf:
            ticket.captured_ns = first.header.captured_ns
        self._block.record(WAIT_IN, max(0, ticket.start_ns - self._since_ns))

        def done(error: BaseException | None) -> None:
            ticket.error = error
            ticket.end_ns = time.monotonic_ns()
            os.eventfd_write(self._wake_fd, 1)

        self._tickets.append(ticket)
        try:
            self._async_stage.start(samples, loans, done)
        except (FrameLostError, FrameFiltered) as error:
            done(error)
        except BaseException as error:
            self._tickets.pop()
            self._outputs.put_back(loans)
            raise self._fail(arrival, error) from error
        self._since_ns = time.monotonic_ns()

    def _pass_on_in_order(self, arrival: Arrival) -> None:
        """A gap takes its turn behind the frames in flight, so that it stays in order."""
        ticket = Ticket(arrival, {})
        ticket.end_ns = ticket.start_ns
        self._tickets.append(ticket)

    def _deliver(self) -> bool:
        tickets = self._tickets
        delivered = False
        while tickets and tickets[0].end_ns:
            self._finish(tickets.popleft())
            delivered = True
        return delivered

    def _finish(self, ticket: Ticket) -> None:
        arrival, outputs = ticket.arrival, self._outputs
        stream, sequence = arrival.stream, arrival.sequence
        if ticket.error is None and not arrival.reason:
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
