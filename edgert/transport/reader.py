"""The reader's end of one edge of a ring (``ring.py``)."""

from __future__ import annotations

import mmap
import time
from collections import deque
from collections.abc import Iterable

from edgert.transport.address import address_of_map
from edgert.transport.edge import EdgePlan
from edgert.transport.ledger import SLOT_HELD, SLOT_READY, SLOT_RELEASED, EdgeBlock
from edgert.transport.queue import TokenQueue
from edgert.transport.ring import RingPlan
from edgert.transport.slot import Sample, frame_of
from edgert.transport.token import AGAIN, ALONE, FRAME, FREE, LAST, LOST, NONE, Token


class RingReader:
    """The reader's end of one edge of a ring.

    Args:
        plan: The edge.
        ring: Its ring.
        memory: The ring's segment, mapped read-only.
        ready: Where tokens arrive.
        free: Where slots are given back.
        block: The edge's counters and states.
    """

    def __init__(  # noqa: PLR0913  the six things an edge consists of
        self,
        plan: EdgePlan,
        ring: RingPlan,
        memory: mmap.mmap,
        ready: TokenQueue,
        free: TokenQueue,
        block: EdgeBlock,
    ) -> None:
        address = address_of_map(memory)
        self.plan = plan
        self.ring = ring
        self.memory = memory
        self.block = block
        self.retries = 0
        """Frames that come first, one at a time: with one of them in work a worker has died."""
        self.streams = plan.streams
        self.samples = [Sample(memory, ring.layout, slot, address) for slot in range(ring.slots)]
        self.ready_fd = ready.read_fd
        self.ready_fds: tuple[int, ...] = (ready.read_fd,)
        self.max_age_ns = plan.max_age_ns
        self.priority = plan.priority
        self._expired: set[int] = set()
        self._ready = ready
        self._free = free
        self._words = block.words
        self._states = block.states
        self._number = ring.edges.index(plan)
        self._frames = [(0, 0)] * ring.slots
        self._first: deque[Token] = deque()
        self._alone = -1  # slot of the one frame that came ALONE
        self._later: deque[Token] = deque()  # such frames, until that one is done with

    @property
    def edges(self) -> tuple[RingReader, ...]:
        """This edge: it is the only one that is read."""
        return (self,)

    def receive_nowait(self) -> Token | None:
        """Take the next token; of a frame, its slot is held until ``release``."""
        token = self._first.popleft() if self._first else self._ready.receive_nowait()
        if token is None:
            return None
        sequence, slot, stream, kind, _ = token
        if kind == FRAME:
            self._states[slot] = SLOT_HELD  # after the token: EdgeWriter.send_frame precedes it
            self._frames[slot] = (stream, sequence)
            self.retries -= self.retries > 0
        elif kind == AGAIN:
            return self._taken_once(token)
        elif kind == LAST:
            return self.receive_nowait()  # it has woken whoever waits for more
        return token

    def _taken_once(self, token: Token) -> Token | None:
        """Take a frame of which a writer may have told before, unless it is known."""
        sequence, slot, stream, _, reason = token
        is_new = self._states[slot] == SLOT_READY and frame_of(
            self.memory, self.ring.layout, slot
        ) == (stream, sequence)
        if is_new and reason == ALONE and self._alone >= 0:
            self._later.append(token)
        elif is_new:
            if reason == ALONE:
                self._alone = slot
            self._first.appendleft((sequence, slot, stream, FRAME, NONE))
        return self.receive_nowait()

    def _let_next_come(self, slot: int) -> None:
        """A frame that was to be alone among its like is done with: the next one may come."""
        if slot == self._alone:
            self._alone = -1
            if self._later:
                self._first.append(self._later.popleft())

    def receive_waiting(self) -> list[Token]:
        """Take every token that waits, without holding its slot: for ``receive_first``."""
        tokens = []
        while (token := self._ready.receive_nowait()) is not None:
            if token[3] != LAST:
                tokens.append(token)
        return tokens

    def receive_first(self, tokens: Iterable[Token], retries: int) -> None:
        """Have these tokens received before any other, the first ``retries`` frames singly."""
        self._first.extend(tokens)
        self.retries = retries

    def start_at(self, stream: int, sequence: int) -> None:
        """Take a dead reader's place; frames come in the order in which they were sent anyway."""

    def sample(self, slot: int) -> Sample:
        """Return the frame in a slot that is held."""
        sample = self.samples[slot]
        sample.refresh()
        return sample

    def views_left(self, slot: int) -> list[str]:
        """Name the tensors of a slot's last frame that are still held: asked before ``sample``."""
        return self.samples[slot].views_kept()

    def is_expired(self, slot: int) -> bool:
        """Whether a frame that is held is too old to be worked on: its release counts it so."""
        age_ns = time.monotonic_ns() - self.samples[slot].header.captured_ns
        if age_ns > self.max_age_ns:
            self._expired.add(slot)
        return slot in self._expired

    def release(self, slot: int, outcome: int) -> None:
        """Give a slot back to its writer and count what became of its frame."""
        counter = EdgeBlock.LOST if outcome == LOST else EdgeBlock.PROCESSED
        if slot in self._expired:
            self._expired.remove(slot)
            counter = EdgeBlock.EXPIRED
        self._words[counter] += 1
        self.give_back(slot, *self._frames[slot])
        self._let_next_come(slot)

    def hand_back(self, slot: int, state: int) -> None:
        """Leave a frame undone: its writer gives it to another worker of the stage."""
        self._states[slot] = state  # RingWriter.deal_again follows it
        self._let_next_come(slot)

    def give_back(self, slot: int, stream: int, sequence: int) -> None:
        """Send a slot back; the writer takes it once, however often it comes."""
        self._states[slot] = SLOT_RELEASED  # before the token: RingWriter._collect follows it
        self._free.send((sequence, slot, stream, FREE, self._number))
