"""The two processes of ``bench link``: this one sends frames, the one it forks sends them back.

Both follow the same schedule of blocks. An end works as a node does: a loan first, then the input;
what is there is read at once, and only where nothing is there one poll waits; a slot goes back
through its free pipe. The payload is written once, when the rings are made; a round trip writes
headers and tokens.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgert.device.cores import pin
from edgert.errors import RunError
from edgert.processes import die_with_parent
from edgert.tensor import FrameHeader, PortSpec, TensorSpec
from edgert.transport.edge import EdgePlan, EdgeWriter
from edgert.transport.join import Arrival, Join, Port
from edgert.transport.ledger import Ledger, LedgerLayout
from edgert.transport.queue import PipeQueue, make_pipe
from edgert.transport.reader import RingReader
from edgert.transport.ring import RingPlan, RingWriter
from edgert.transport.segment import create_segment, map_segment, reopen_read_only
from edgert.transport.slot import Loan, Sample, SlotLayout
from edgert.transport.token import NONE

_BLOCK = 100
_WARM_UP_BLOCKS = 2
_DATA = "data"
_PORT = "image"
_WORD_BYTES = 8

Rounds = Callable[[int], list[int]]
"""Makes so many round trips and returns the time of each in nanoseconds."""


def measure(sizes: list[int], rounds: int, slots: int, cores: tuple[int, int]) -> dict[str, object]:
    """Measure, as ``bench/link.py`` asks; runs in a process of its own.

    Returns:
        ``floor`` and ``round_trips`` (by size), nanoseconds of every round trip.
    """
    there, back = os.eventfd(0), os.eventfd(0)
    pairs = [_Pair(size, slots) for size in sizes]
    blocks = _WARM_UP_BLOCKS + -(-rounds // _BLOCK)
    parent = os.getpid()
    gc.disable()
    # Before the fork: of a child that is gone sooner nobody would be told.
    signal.signal(signal.SIGCHLD, lambda *_: _require_success())
    if os.fork() == 0:
        die_with_parent(parent)
        try:
            pin((cores[1],))
            echoes = [
                lambda n: _echo_bare(there, back, n),
                *(pair.far_end().echo for pair in pairs),
            ]
            _echo(echoes, blocks)
            os._exit(0)
        finally:
            os._exit(1)
    pin((cores[0],))
    turns: list[Rounds] = [lambda n: _round_trips_bare(there, back, n)]
    turns += [pair.near_end().round_trips for pair in pairs]
    floor, *found = _measure(turns, blocks, rounds)
    return {"floor": floor, "round_trips": found}


def _measure(turns: Sequence[Rounds], blocks: int, rounds: int) -> list[list[int]]:
    times: list[list[int]] = [[] for _ in turns]
    for block in range(blocks):
        for kept, turn in zip(times, turns, strict=True):
            found = turn(_BLOCK)
            if block >= _WARM_UP_BLOCKS:
                kept.extend(found)
    return [kept[:rounds] for kept in times]


def _echo(turns: Sequence[Callable[[int], None]], blocks: int) -> None:
    for _ in range(blocks):
        for turn in turns:
            turn(_BLOCK)


def _round_trips_bare(there: int, back: int, count: int) -> list[int]:
    times = []
    for _ in range(count):
        start_ns = time.monotonic_ns()
        os.eventfd_write(there, 1)
        os.eventfd_read(back)
        times.append(time.monotonic_ns() - start_ns)
    return times


def _echo_bare(there: int, back: int, count: int) -> None:
    for _ in range(count):
        os.eventfd_read(there)
        os.eventfd_write(back, 1)


class _Ring:
    """A ring of one tensor, from stage ``writer`` to stage ``reader``, both ends still open."""

    def __init__(self, writer: str, reader: str, size: int, slots: int) -> None:
        edge = EdgePlan(
            name=f"{writer}.{_PORT}->{reader}.{_PORT}",
            reader=reader,
            port=_PORT,
            depth=1,
            drops=False,
            held=1,
            streams=(0,),
        )
        layout = SlotLayout.of(PortSpec(_PORT, {_DATA: TensorSpec("u8", (size,))}))
        self._plan = RingPlan(f"{writer}.{_PORT}", slots, layout, (edge,))
        self._memory = create_segment(self._plan.name, self._plan.nbytes)
        self._ready = PipeQueue(*make_pipe())
        self._free = PipeQueue(*make_pipe())
        accounts = LedgerLayout(stages=(), edges={edge.name: slots}, streams={"link": 0})
        fd = create_segment("ledger", -(-accounts.nbytes // _WORD_BYTES) * _WORD_BYTES)
        self._block = Ledger(map_segment(fd, writable=True), accounts).edge(edge.name)

    def writer(self) -> RingWriter:
        """Return the writer's end, its slots filled."""
        edge = EdgeWriter(self._plan.edges[0], self._ready, self._block)
        memory = map_segment(self._memory, writable=True)
        writer = RingWriter(self._plan, memory, self._free, [edge])
        for loan in writer.loans:
            loan.tensor(_DATA)[:] = loan.index + 1
        return writer

    def reader(self) -> RingReader:
        """Return the reader's end."""
        memory = map_segment(reopen_read_only(self._memory), writable=False)
        edge = self._plan.edges[0]
        return RingReader(edge, self._plan, memory, self._ready, self._free, self._block)


class _Pair:
    """The ring there and the ring back, for frames of one size."""

    def __init__(self, size: int, slots: int) -> None:
        self._there = _Ring("near", "far", size, slots)
        self._back = _Ring("far", "near", size, slots)

    def near_end(self) -> _End:
        """Return the end of the process that measures."""
        return _End(self._there.writer(), self._back.reader())

    def far_end(self) -> _End:
        """Return the end of the process that sends everything back."""
        return _End(self._back.writer(), self._there.reader())


@dataclass(slots=True)
class _Received:
    """A frame that is held."""

    arrival: Arrival
    sample: Sample


class _End:
    """One process's writer of one ring and reader of the other."""

    def __init__(self, writer: RingWriter, reader: RingReader) -> None:
        self._writer = writer
        self._reader = reader
        self._join = Join([Port(_PORT, [reader])])
        self._wait_slot = _waiter(writer.free_fd)
        self._wait_frame = _waiter(reader.ready_fd)
        self._sequence = 0

    def round_trips(self, count: int) -> list[int]:
        """Send frames and wait for each to come back.

        Raises:
            RunError: Another frame came back than was sent.
        """
        times = []
        for _ in range(count):
            start_ns = time.monotonic_ns()
            loan = self._loan()
            loan.set_header(FrameHeader(sequence=self._sequence, captured_ns=start_ns))
            loan.tensor(_DATA)
            self._writer.commit(loan, 0, self._sequence)
            received = self._receive()
            self._require_sent(received)
            self._release(received)
            times.append(time.monotonic_ns() - start_ns)
            self._sequence += 1
        return times

    def echo(self, count: int) -> None:
        """Send a frame back for each one that comes, as a stage with one input does."""
        for _ in range(count):
            loan = self._loan()
            received = self._receive()
            loan.inherit(received.sample)
            loan.tensor(_DATA)
            self._writer.commit(loan, received.arrival.stream, received.arrival.sequence)
            self._release(received)

    def _require_sent(self, received: _Received) -> None:
        """Read the last byte of the frame, so that what came back is the payload itself."""
        sample = received.sample
        is_whole = sample.tensors[_DATA][-1] == sample.index + 1
        if received.arrival.sequence != self._sequence or not is_whole:
            raise RunError("bench link", "another frame came back than was sent")

    def _loan(self) -> Loan:
        while (loan := self._writer.loan_nowait()) is None:
            self._wait_slot(None)
        return loan

    def _receive(self) -> _Received:
        while (arrival := self._join.receive_nowait()) is None:
            self._wait_frame(None)
        return _Received(arrival, self._reader.sample(arrival.held[_PORT].slot))

    def _release(self, received: _Received) -> None:
        held = received.arrival.held[_PORT]
        held.reader.release(held.slot, NONE)


def _waiter(fd: int) -> Callable[[None], object]:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return poller.poll


def _require_success() -> None:
    _, status = os.wait()  # for the only child there is
    if status:
        raise RunError("bench link", "the process at the other end has failed")
