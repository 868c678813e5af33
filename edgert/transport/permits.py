"""Turns at a device that several stages use: so many inferences at once, the urgent ones first.

    pool pipe of the device  <- a permit for which nobody waits
    grant pipe of each stage <- a permit handed to the stage that is first in line

A stage takes a permit before it starts an inference and gives it back when that has ended: one read
and one write. Who waits, since when and how urgently stands in the ledger; whoever gives a permit
back hands it to the first in line, so that a busy stage cannot take its own again and again while
others look on. A permit that comes to a stage which needs none any more is passed on. What a dead
worker had is given back by the supervisor (``runtime/turns.py``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgert.transport.ledger import StageBlock

RANKS = {"high": 0, "normal": 1, "low": 2}
_PERMIT = b"."


@dataclass(frozen=True, slots=True)
class Line:
    """A stage that may wait for a limited device.

    Attributes:
        rank: The lower, the more urgent.
        words: Its place in the ledger.
        grant: Where a permit is handed to it: the end to write.
    """

    rank: int
    words: memoryview
    grant: int


class Office:
    """Hands permits of one device to whom they are due.

    Args:
        device: Number of the device among those that are limited, from 1.
        pool: Where a permit goes that nobody waits for: the end to write.
        lines: Every stage that may wait for a limited device.
    """

    def __init__(self, device: int, pool: int, lines: Iterable[Line]) -> None:
        self.device = device
        self._pool = pool
        self._lines = tuple(lines)

    def hand_on(self) -> None:
        """Give a permit to the first in line; to the pool where nobody waits."""
        waiting = [
            (line.rank, line.words[StageBlock.WAITS], line.grant)
            for line in self._lines
            if line.words[StageBlock.WAITS] and line.words[StageBlock.DEVICE] == self.device
        ]
        os.write(min(waiting)[2] if waiting else self._pool, _PERMIT)


class Permits:
    """What one stage has of a device.

    Args:
        office: Hands on what it gives back.
        block: Its place in the ledger.
        grant: Where permits are handed to it: the end to read.
        pool: Where permits lie that nobody waits for: the end to read.
    """

    def __init__(self, office: Office, block: StageBlock, grant: int, pool: int) -> None:
        self._office = office
        self._words = block.words
        self._words[StageBlock.PERMITS] = 0
        self._words[StageBlock.WAITS] = 0
        self._words[StageBlock.DEVICE] = office.device
        self._grant = grant
        self._pool = pool

    @property
    def fds(self) -> Sequence[int]:
        """What to poll: a permit that nobody waits for is of interest only to who does."""
        return (self._grant, self._pool) if self._words[StageBlock.WAITS] else (self._grant,)

    def take(self) -> bool:
        """Take a permit; from now on the stage stands in line until it has one."""
        words = self._words
        if not (self._has(self._grant) or self._has(self._pool)):
            if not words[StageBlock.WAITS]:
                words[StageBlock.WAITS] = time.monotonic_ns()
            return False
        words[StageBlock.WAITS] = 0
        return True

    def keep(self, count: int) -> None:
        """Give back what is more than ``count``; what is handed over unasked for is passed on."""
        words = self._words
        while not words[StageBlock.WAITS] and self._has(self._grant):
            pass
        while words[StageBlock.PERMITS] > count:
            words[StageBlock.PERMITS] -= 1
            self._office.hand_on()

    def _has(self, fd: int) -> bool:
        try:
            found = os.read(fd, 1)
        except BlockingIOError:
            return False
        self._words[StageBlock.PERMITS] += len(found)
        return bool(found)


def fill(pool: int, count: int) -> None:
    """Put a device's permits into its pool, before anybody runs."""
    os.write(pool, _PERMIT * count)


def drain(grant: int) -> int:
    """Return how many permits were handed to a stage that takes none any more."""
    try:
        return len(os.read(grant, 4096))
    except BlockingIOError:
        return 0
