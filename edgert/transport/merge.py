"""Puts the frames of a stage that runs as several workers back in order, for one reader.

Each worker writes a ring of its own, and every frame of a stream yields one token on one of them, a
slot or a gap: so the next number of a stream always comes, and nobody waits by the clock. What
comes early is held here; the plan gives those rings a slot for every frame that may be in flight,
so that no worker waits for a loan while its frame is the one that all others wait for.

A dead worker's stand-in may say a gap for a frame that another worker has sent: nothing is handed
on before every edge has been read empty, and a frame counts more than a gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from edgert.transport.reader import RingReader
from edgert.transport.slot import Sample
from edgert.transport.token import END, FRAME, GAP, LOST, NONE, Token


class MergedReader:
    """The edges of all replicas of a stage, read as if they were one.

    Args:
        readers: The reader's end of each replica's edge; they carry the same streams.
    """

    def __init__(self, readers: Sequence[RingReader]) -> None:
        self.streams = readers[0].streams
        self.ready_fds = tuple(fd for reader in readers for fd in reader.ready_fds)
        self.max_age_ns = readers[0].max_age_ns
        self.priority = readers[0].priority
        self.edges = tuple(readers)
        self._readers = self.edges
        self._early: dict[int, dict[int, Token]] = {stream: {} for stream in self.streams}
        self._next = dict.fromkeys(self.streams, 0)
        self._ends_missing = {stream: set(range(len(readers))) for stream in self.streams}
        self._moved: set[int] = set()
        self._due: deque[Token] = deque()

    def receive_nowait(self) -> Token | None:
        """Take the next token of any stream, in the order of its frames."""
        if not self._due:
            while self._collect():  # what was sent before a gap is there once a whole round is dry
                pass
            for stream in self._moved:
                self._advance(stream)
            self._moved.clear()
        return self._due.popleft() if self._due else None

    def start_at(self, stream: int, sequence: int) -> None:
        """Take a dead reader's place: what comes before a frame is done."""
        self._next[stream] = sequence

    def sample(self, slot: int) -> Sample:
        """Return the frame in a slot that is held."""
        slot, number = divmod(slot, len(self._readers))
        return self._readers[number].sample(slot)

    def views_left(self, slot: int) -> list[str]:
        """Name the tensors of a slot's last frame that are still held: asked before ``sample``."""
        slot, number = divmod(slot, len(self._readers))
        return self._readers[number].views_left(slot)

    def is_expired(self, slot: int) -> bool:
        """Whether a frame that is held is too old to be worked on: its release counts it so."""
        slot, number = divmod(slot, len(self._readers))
        return self._readers[number].is_expired(slot)

    def release(self, slot: int, outcome: int) -> None:
        """Give a slot back to its writer and count what became of its frame."""
        slot, number = divmod(slot, len(self._readers))
        self._readers[number].release(slot, outcome)

    def _advance(self, stream: int) -> None:
        """Let every token go whose turn it is; at the end of the stream, all that are left."""
        early = self._early[stream]
        sequence = self._next[stream]
        is_over = not self._ends_missing[stream]
        while early:
            token = early.pop(sequence, None)
            if token is None and not is_over:
                break
            # What is missing at the end died with a worker, and left no trace.
            self._due.append(token or (sequence, 0, stream, GAP, LOST))
            sequence += 1
        self._next[stream] = sequence
        if is_over:
            self._due.append((0, 0, stream, END, NONE))

    def _collect(self) -> bool:
        """Read every edge empty once; whether there was anything."""
        found = False
        for number, reader in enumerate(self._readers):
            while (token := reader.receive_nowait()) is not None:
                found = True
                self._keep(number, token)
        return found

    def _keep(self, number: int, token: Token) -> None:
        sequence, slot, stream, kind, reason = token
        early = self._early[stream]
        self._moved.add(stream)
        if kind == END:
            self._ends_missing[stream].discard(number)
        elif kind == FRAME:
            known = early.get(sequence)
            if sequence < self._next[stream] or (known and known[3] == FRAME):
                self._readers[number].release(slot, LOST)  # it was given up, or is here already
                return
            early[sequence] = (sequence, slot * len(self._readers) + number, stream, kind, reason)
        elif sequence >= self._next[stream]:
            early.setdefault(sequence, token)
