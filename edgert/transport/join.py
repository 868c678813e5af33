"""Pairs what arrives on the inputs of a stage, frame by frame.

A frame yields one token per output port, a slot or a gap, and every token of a frame reaches the
stage sooner or later; so a pair is complete when each input has its token, and nobody waits for a
frame that will not come. Gaps may arrive late (a frame that was taken back), slots arrive in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from edgert.transport.reader import RingReader
from edgert.transport.slot import Sample
from edgert.transport.token import DROPPED, END, FRAME, GAP, LOST, NONE, Token


class Reader(Protocol):
    """What a port reads from: an edge, or the edges of replicas put in order (``merge.py``).

    Attributes:
        streams: Numbers of the streams that come this way.
        ready_fds: What to poll.
        max_age_ns: Age above which ``is_expired`` is to be asked of a frame; 0 for never.
        priority: Frames that are taken in a row while other edges of the port have some, too.
    """

    streams: tuple[int, ...]
    ready_fds: tuple[int, ...]
    max_age_ns: int
    priority: int

    @property
    def edges(self) -> tuple[RingReader, ...]:
        """The reader's end of each edge that it reads."""
        ...

    def start_at(self, stream: int, sequence: int) -> None:
        """Take a dead reader's place: what comes before a frame is done."""
        ...

    def receive_nowait(self) -> Token | None:
        """Take the next token; of a frame, its slot is held until ``release``."""
        ...

    def sample(self, slot: int) -> Sample:
        """Return the frame in a slot that is held."""
        ...

    def views_left(self, slot: int) -> list[str]:
        """Name the tensors of a slot's last frame that are still held: asked before ``sample``."""
        ...

    def is_expired(self, slot: int) -> bool:
        """Whether a frame that is held is too old to be worked on: its release counts it so."""
        ...

    def release(self, slot: int, outcome: int) -> None:
        """Give a slot back to its writer and count what became of its frame."""
        ...


class Held:
    """A frame on one input: the reader and the slot to give back."""

    __slots__ = ("reader", "slot")

    def __init__(self, reader: Reader, slot: int) -> None:
        self.reader = reader
        self.slot = slot

    def views_kept(self) -> list[str]:
        """Name the tensors of the slot's last frame of which somebody still holds a view."""
        return self.reader.views_left(self.slot)


class Arrival:
    """Everything that the inputs have of one frame.

    Attributes:
        stream: Number of the stream.
        sequence: Number of the frame.
        held: Input port -> the slot it came in.
        reason: NONE, or the worst reason of a gap: then the frame will not be whole.
        missing: A bit for each input that has not said anything yet.
    """

    __slots__ = ("held", "missing", "reason", "sequence", "stream")

    def __init__(self, stream: int, sequence: int, missing: int) -> None:
        self.stream = stream
        self.sequence = sequence
        self.missing = missing
        self.held: dict[str, Held] = {}
        self.reason = NONE


class Port:
    """One input port: the readers of its edges, taken in turn so that none starves.

    Each gives as many frames in a row as its priority says, or as it has.
    """

    def __init__(self, name: str, readers: Sequence[Reader]) -> None:
        self.name = name
        self.readers = tuple(readers)
        self.ends_missing = {
            (number, stream) for number, reader in enumerate(readers) for stream in reader.streams
        }
        self.next = 0
        self._left = self.readers[0].priority if readers else 0

    def has_given(self, *, is_dry: bool) -> None:
        """Count a token of the reader whose turn it is; it passes on when its turn is over."""
        self._left -= 1
        if is_dry or self._left < 1:
            self.next = (self.next + 1) % len(self.readers)
            self._left = self.readers[self.next].priority


class Join:
    """Collects arrivals over the input ports of one stage."""

    def __init__(self, ports: Sequence[Port]) -> None:
        self.ports = tuple(ports)
        self.fds = tuple(fd for port in ports for reader in port.readers for fd in reader.ready_fds)
        self._pending: dict[tuple[int, int], Arrival] = {}
        self._ended_streams: list[int] = []
        self._ends_missing = sum(len(port.ends_missing) for port in ports)
        self._turn = 0

    @property
    def ended(self) -> bool:
        """Whether every stream has ended on every input, and nothing is pending."""
        return not self._ends_missing and not self._pending

    @property
    def is_retrying(self) -> bool:
        """Whether a frame comes next with which a worker has died."""
        return any(
            edge.retries for port in self.ports for each in port.readers for edge in each.edges
        )

    def streams_ended(self) -> list[int]:
        """Return the streams of which nothing will come any more, each once.

        A stream that ended on every input while a frame of it still lacks a token waits for that.
        """
        if not self._ended_streams:
            return []
        pending = {stream for stream, _ in self._pending}
        ended = [stream for stream in self._ended_streams if stream not in pending]
        self._ended_streams = [stream for stream in self._ended_streams if stream in pending]
        return ended

    def receive_nowait(self) -> Arrival | None:
        """Return the next frame of which every input has its token; None where there is none yet.

        Streams that end meanwhile are told by ``streams_ended``. When all have ended, a frame that
        still lacks a token lost it with a worker, and is returned as lost.
        """
        ports = self.ports
        idle = 0
        while idle < len(ports):
            turn = self._turn
            self._turn = (turn + 1) % len(ports)
            arrival = self._receive_from(turn)
            if arrival is None:
                idle += 1
            elif not arrival.missing:
                return arrival
            else:
                idle = 0
        if self._pending and not self._ends_missing:
            _, arrival = self._pending.popitem()
            arrival.reason = LOST
            return arrival
        return None

    def _receive_from(self, turn: int) -> Arrival | None:
        """Take one token from a port; an END is noted and the next token taken."""
        port = self.ports[turn]
        readers = port.readers
        tried = 0
        while tried < len(readers):
            reader = readers[port.next]
            token = reader.receive_nowait()
            if token is None or token[3] != END:
                port.has_given(is_dry=token is None)
            if token is None:
                tried += 1
                continue
            sequence, slot, stream, kind, reason = token
            if kind == END:
                self._note_end(port, stream)
                continue
            arrival = self._arrival(turn, stream, sequence)
            if arrival is None:
                continue
            if kind == FRAME:
                arrival.held[port.name] = Held(reader, slot)
                if reader.max_age_ns and reader.is_expired(slot):
                    arrival.reason = max(arrival.reason, DROPPED)
            elif kind == GAP:
                arrival.reason = max(arrival.reason, reason)
            return arrival
        return None

    def _arrival(self, turn: int, stream: int, sequence: int) -> Arrival | None:
        """Return the frame that a token speaks of; None where this port has spoken of it."""
        ports = len(self.ports)
        if ports == 1:
            return Arrival(stream, sequence, 0)
        key = (stream, sequence)
        arrival = self._pending.get(key)
        if arrival is None:
            arrival = self._pending[key] = Arrival(stream, sequence, (1 << ports) - 1)
        if not arrival.missing & (1 << turn):
            return None  # a dead worker's frame; its stand-in could not know that it was sent
        arrival.missing -= 1 << turn
        if not arrival.missing:
            del self._pending[key]
        return arrival

    def _note_end(self, port: Port, stream: int) -> None:
        end = (port.next, stream)
        if end not in port.ends_missing:
            return  # said by a dead worker, and again by its stand-in
        port.ends_missing.remove(end)
        self._ends_missing -= 1
        if not any(stream == other for each in self.ports for _, other in each.ends_missing):
            self._ended_streams.append(stream)
