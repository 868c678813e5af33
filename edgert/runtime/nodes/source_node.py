"""Drives a source: frames enter through the flow gate.

A file waits at the gate. A live source drops there, whole frames, the newest kept: a join later in
the graph always finds its partners.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set

from edgert.errors import EdgertError, FrameLostError, SourceError, UserError
from edgert.runtime.nodes.feed_watch import FeedWatch
from edgert.runtime.nodes.node import WAIT_IN, Node
from edgert.runtime.nodes.outputs import Outputs
from edgert.stages.base import Source
from edgert.stages.raised import raised
from edgert.stages.refusals import refuse_kept_views
from edgert.tensor import FrameHeader
from edgert.transport.gate import FlowGate
from edgert.transport.ledger import StageBlock
from edgert.transport.recovery import Frame
from edgert.transport.token import LOST


class SourceNode(Node):
    """Grabs frames, numbers them, and sends them off while credits last.

    Args:
        stage: The source.
        block: Its place in the ledger.
        outputs: Its rings.
        gate: The gate of its stream.
        stream: Number of its stream.
        max_frames: Frames after which it ends; 0 for no limit.
        on_input_fault: Told when the input turns out not to be whole, or a camera is gone for good.
        watch: What it knows of its live source; None for any other.
    """

    how_to_write = "Write a tensor in write(), of 0 things too, or raise FrameLostError"

    def __init__(  # noqa: PLR0913, PLR0917  the wiring of a source is wider than that of other stages
        self,
        stage: Source,
        block: StageBlock,
        outputs: Outputs,
        gate: FlowGate,
        stream: int,
        max_frames: int,
        on_input_fault: Callable[[EdgertError], None],
        watch: FeedWatch | None = None,
    ) -> None:
        super().__init__(stage, block, outputs)
        self._source = stage
        self._gate = gate
        self._stream = stream
        self._max_frames = max_frames
        self._on_input_fault = on_input_fault
        self._watch = watch
        self._sequence = 0
        self._kept: FrameHeader | None = None
        self._kept_lost: FrameLostError | None = None
        self._ending = False

    def settle_accounts(self, marks: Mapping[int, int]) -> None:
        """Account for the answers that a dead source had in hand (``FlowGate.recover``)."""
        self._gate.recover(marks, self._block.mark(StageBlock.BEGUN, self._stream) >> 2)

    def recover(self, in_flight: Mapping[int, Sequence[int]], set_aside: Set[Frame]) -> None:
        """Go on after the last frame that was sent; a file is read on from there."""
        stream = self._stream
        self._outputs.finish_begun((stream,))
        first = self._block.mark(StageBlock.BEGUN, stream) >> 2
        self._sequence = max(first, *(sequence + 1 for sequence in in_flight[stream]), 0)
        unsent = [sequence for sequence in in_flight[stream] if sequence >= first]
        if not self._source.is_live:
            self._sequence = first
            unsent = [n for n in (first,) if (stream, n) in set_aside]
        for sequence in unsent:
            self._gate.admit(sequence)
            self._outputs.gap(stream, sequence, LOST)
            self._sequence = sequence + 1
        if self._outputs.have_ended(stream):
            self._end()
        elif not self._source.is_live:
            self._source.resume(self._sequence)

    def begin(self) -> None:
        """Begin to wait; a live source begins to connect."""
        super().begin()
        if self._watch is not None:
            self._watch.feed.start()

    def step(self) -> bool:
        """Send one frame off, or drop one; account for what came back."""
        if self._ending:
            self._gate.settle()
            self.finished = self._outputs.send_ends() and not self._gate.in_flight
            return False
        if self._watch is not None and not self._is_there(self._watch):
            return False
        can_send = self._gate.is_open() and self._has_loans()
        if self._source.is_live and self._watch is None:
            return self._step_live(can_send=can_send)
        if not can_send:
            return False
        if not self._grab():
            self._end()
        elif self._kept is not None:
            self._send(self._kept)
        return True

    def _is_there(self, watch: FeedWatch) -> bool:
        """Whether a live source has something to grab; frames that never came here are counted."""
        self._words[StageBlock.LOST] += watch.look(self._gate)
        if watch.feed.is_ready():
            return True
        self._gate.settle()  # nobody else asks for credits while no frame comes
        return False

    def settle(self) -> bool:
        """Drop a live frame that is kept: the next process has newer ones."""
        if self._kept is not None:
            self._kept = None
            self._gate.drop()
        return True

    def wait_fds(self) -> Sequence[int]:
        """Wait for a live source's frame, for credits, else for a slot."""
        if self._ending:
            return (self._gate.done_fd, *self._outputs.end_fds())
        if not self._gate.has_room:  # not is_open(): a credit that comes now is in the pipe polled
            return (self._gate.done_fd,)
        if self._watch is not None and not self._watch.feed.is_ready():
            return (self._watch.feed.ready_fd,)
        return self._outputs.free_fds  # not for credits: each frame that ends would wake it

    def stop(self) -> None:
        """End the stream before its next frame."""
        if not self._ending:
            self._end()

    def _step_live(self, *, can_send: bool) -> bool:
        if can_send and self._kept is not None:
            self._send(self._kept)
            return True
        replaced = self._kept is not None
        if not self._grab():
            self._end()
        elif replaced:
            self._gate.drop()
        return True

    def _grab(self) -> bool:
        """Fetch a frame into ``_kept``; whether the stream goes on."""
        if self._max_frames and self._sequence >= self._max_frames:
            return False
        start_ns = time.monotonic_ns()
        self._block.record(WAIT_IN, start_ns - self._since_ns)
        self._since_ns = start_ns
        words = self._words
        words[StageBlock.WORKING + self._stream * StageBlock.MARKS] = self._sequence + 1
        words[StageBlock.BUSY] = start_ns
        try:
            header = self._source.grab()
        except FrameLostError as error:
            self._count_lost(error)
            return True
        except (UserError, SourceError) as error:
            self._on_input_fault(error)
            return False
        except EdgertError:
            raise
        except BaseException as error:
            raise self._raised(error) from error
        finally:
            words[StageBlock.BUSY] = 0
        if header is None:
            return False  # one that is kept still counts: _end() drops it
        if self._watch is None:
            self._kept = header
        else:
            self._kept = self._watch.in_its_epoch(header)
        return True

    def _count_lost(self, error: FrameLostError) -> None:
        """A frame that could not be had is read and lost; its gap keeps joins and leaves right."""
        self._kept = None
        if not self._gate.is_open():
            self._gate.drop()
            return
        self._gate.admit(self._sequence)
        self._lose(error, self._stream, self._sequence)
        self._outputs.gap(self._stream, self._sequence, LOST)
        self._sequence += 1

    def _send(self, header: FrameHeader) -> None:
        self._kept = None
        outputs, stream, sequence = self._outputs, self._stream, self._sequence
        self._sequence += 1
        numbered = header._replace(stream=stream, sequence=sequence)
        self._gate.admit(sequence)
        for loan in outputs.loans.values():
            loan.set_header(numbered)
        try:
            self._source.write(outputs.loans)
        except FrameLostError as error:
            self._lose(error, stream, sequence)
            outputs.put_back(outputs.loans)  # what was written does not belong to the next frame
            outputs.gap(stream, sequence, LOST)
            return
        except BaseException as error:
            outputs.gap(stream, sequence, LOST)
            raise self._raised(error) from error
        self._written.require(outputs.loans, sequence)
        refuse_kept_views(self.stage.context.place, {}, outputs.loans)
        start_ns = self._since_ns
        end_ns = time.monotonic_ns()
        outputs.commit(outputs.loans, stream, sequence)
        self._book(start_ns, end_ns)

    def _end(self) -> None:
        if self._kept is not None:
            self._kept = None
            self._gate.drop()
        if self._watch is not None:
            self._words[StageBlock.LOST] += self._watch.look(self._gate)
        self._ending = True
        self._gate.end()
        self._outputs.end(self._stream)

    def _raised(self, error: BaseException) -> EdgertError:
        place = self.stage.context.place
        return raised(type(self.stage), place, error, f"on frame {self._sequence}")
