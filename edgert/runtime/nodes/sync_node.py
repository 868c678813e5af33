"""Drives a stage that makes one frame at a time."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence

from edgert.errors import FrameFiltered, FrameLostError
from edgert.runtime.nodes.node import WAIT_IN, ReadingNode
from edgert.stages.base import Inputs
from edgert.stages.refusals import kept_input, kept_output, refuse_kept_views
from edgert.transport.holders import holders
from edgert.transport.join import Arrival
from edgert.transport.ledger import StageBlock
from edgert.transport.token import FILTERED, LOST, NONE


class SyncNode(ReadingNode):
    """Loans, an arrival, ``process``, commit, release."""

    how_to_write = "Write a tensor in process(), of 0 things too, or raise FrameFiltered"

    def step(self) -> bool:
        """Process one frame, or pass one gap on."""
        if not self._has_loans():
            return False
        arrival = self._join.receive_nowait()
        if arrival is None:
            self._pass_on_ends()
            self.finished = self._outputs.send_ends() and self._join.ended
            return False
        if arrival.reason:
            self._pass_on_gap(arrival, arrival.reason)
        else:
            self._process(arrival)
        return True

    def wait_fds(self) -> Sequence[int]:
        """Wait for a slot while one is lacking, or to be done; else for an input."""
        if self._lacks_loan:
            return self._outputs.free_fds
        return (*self._join.fds, *self._outputs.end_fds())

    def _process(self, arrival: Arrival) -> None:
        start_ns = time.monotonic_ns()
        self._block.record(WAIT_IN, start_ns - self._since_ns)
        self._begin_work(arrival)
        self._words[StageBlock.BUSY] = start_ns
        samples = self._samples(arrival)
        first = samples[self._order[0]]
        outputs, place = self._outputs, self.stage.context.place
        for loan in outputs.loans.values():
            loan.inherit(first)
        held, held_loans = holders(samples), holders(outputs.loans)
        outcome = self._run(arrival, samples)
        end_ns = time.monotonic_ns()
        self._words[StageBlock.BUSY] = 0
        if outcome != NONE:
            outputs.put_back(outputs.loans)  # what was written does not belong to the next frame
            outputs.gap(arrival.stream, arrival.sequence, outcome)
        else:
            refuse_kept_views(place, samples, outputs.loans)
            if holders(samples) != held or holders(outputs.loans) != held_loans:
                gc.collect()  # what only a cycle holds (a caught exception, say) is not kept
            if holders(samples) != held:
                raise kept_input(place)
            if holders(outputs.loans) != held_loans:
                raise kept_output(place)
            self._written.require(outputs.loans, arrival.sequence)
            if self.is_leaf:
                self._book_latency(first.header.captured_ns, end_ns)
            outputs.commit(outputs.loans, arrival.stream, arrival.sequence)
            self._book(start_ns, end_ns)
        self._release(arrival, outcome)

    def _run(self, arrival: Arrival, samples: Inputs) -> int:
        """Return NONE, FILTERED or LOST; any other error of the stage ends the worker."""
        try:
            self.stage.process(samples, self._outputs.loans)
        except FrameFiltered:
            self._words[StageBlock.FILTERED] += 1
            return FILTERED
        except FrameLostError as error:
            self._lose(error, arrival.stream, arrival.sequence)
            return LOST
        except BaseException as error:
            raise self._fail(arrival, error) from error
        return NONE
