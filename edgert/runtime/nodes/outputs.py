"""Where the frames of a stage leave: its rings, or the gates that it answers to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgert.transport.ledger import StageBlock
from edgert.transport.queue import PipeQueue
from edgert.transport.ring import RingWriter
from edgert.transport.slot import Loan
from edgert.transport.token import DONE, NONE


class Outputs:
    """The rings that a stage writes, or for a leaf the gates it answers to.

    Args:
        rings: Output port -> its ring.
        leaf: Number of the leaf, -1 where there are outputs.
        done: Stream -> DONE queue of its gate; without streams that this leaf does not answer.
        block: The stage's place in the ledger.
    """

    def __init__(
        self,
        rings: Mapping[str, RingWriter],
        leaf: int,
        done: Mapping[int, PipeQueue],
        block: StageBlock,
    ) -> None:
        self._block = block
        self._words = block.words
        self._rings = tuple(rings.items())
        self._writers = tuple(rings.values())
        self._leaf = leaf
        self._done = done
        self.loans: dict[str, Loan] = {}
        self.free_fds = tuple(ring.free_fd for ring in self._writers)

    def take_loans(self) -> bool:
        """Take a loan of every ring; whether all are in hand."""
        loans = self.loans
        if len(loans) == len(self._rings):
            return True
        for port, ring in self._rings:
            if port not in loans:
                loan = ring.loan_nowait()
                if loan is None:
                    return False
                loans[port] = loan
        return True

    def give_up_loans(self) -> dict[str, Loan]:
        """Hand the loans over to a caller that commits them later."""
        loans, self.loans = self.loans, {}
        return loans

    def commit(self, loans: dict[str, Loan], stream: int, sequence: int) -> None:
        """Send filled loans to their readers; a leaf tells the gate instead."""
        words, at = self._words, stream * StageBlock.MARKS
        words[StageBlock.BEGUN + at] = mark = sequence + 1 << 2
        for port, ring in self._rings:
            ring.commit(loans[port], stream, sequence)
        loans.clear()
        if self._leaf >= 0:
            self._tell_gate(stream, sequence, NONE)
        words[StageBlock.DONE + at] = mark

    def gap(self, stream: int, sequence: int, reason: int) -> None:
        """Say on every output that a frame will not come."""
        words, at = self._words, stream * StageBlock.MARKS
        mark = sequence + 1 << 2 | reason
        words[StageBlock.BEGUN + at] = max(mark, words[StageBlock.BEGUN + at])
        for ring in self._writers:
            ring.gap(stream, sequence, reason)
        if self._leaf >= 0:
            self._tell_gate(stream, sequence, reason)
        words[StageBlock.DONE + at] = max(mark, words[StageBlock.DONE + at])

    def finish_begun(self, streams: Iterable[int]) -> None:
        """Finish the frames that a dead worker was about to send: what was said counts once."""
        for stream in streams:
            begun = self._block.mark(StageBlock.BEGUN, stream)
            if begun == self._block.mark(StageBlock.DONE, stream):
                continue
            sequence, reason = (begun >> 2) - 1, begun & 3
            if reason:
                self.gap(stream, sequence, reason)
                continue
            for ring in self._writers:
                ring.commit_again(stream, sequence)
            if self._leaf >= 0:
                self._tell_gate(stream, sequence, NONE)
            self._words[StageBlock.DONE + stream * StageBlock.MARKS] = begun

    def have_ended(self, stream: int) -> bool:
        """Whether anybody was told that a stream has ended."""
        return any(ring.has_ended(stream) for ring in self._writers)

    def end(self, stream: int) -> None:
        """Say on every output that a stream has ended."""
        for ring in self._writers:
            ring.end(stream)

    def send_ends(self) -> bool:
        """Say so where a frame might still have had to go to another worker; whether all know."""
        all_know = True
        for ring in self._writers:
            all_know &= ring.send_ends()
        return all_know

    def end_fds(self) -> tuple[int, ...]:
        """Return what to wait for before a reader can be told of an end; mostly nothing."""
        return tuple(ring.free_fd for ring in self._writers if ring.has_untold_ends)

    def deal_again(self) -> None:
        """Give frames that a worker behind this stage has left undone to another one."""
        for ring in self._writers:
            ring.deal_again()

    def put_back(self, loans: dict[str, Loan]) -> None:
        """Give loans back unsent."""
        for port, ring in self._rings:
            if port in loans:
                ring.put_back(loans.pop(port))

    def _tell_gate(self, stream: int, sequence: int, outcome: int) -> None:
        done = self._done.get(stream)
        if done is not None:
            done.send((sequence, self._leaf, stream, DONE, outcome))
