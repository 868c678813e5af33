"""The loop of a worker: nodes take turns, and one poll waits for all of them.

One poll covers every pipe, the eventfd of finished inferences and the control socket. Read first,
then poll: where there is work there is no system call in between.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence

from edgert.control.channel import WorkerChannel
from edgert.control.messages import Change, Deal, Leave, Lend, Lent, LogLevel, Resume, Stop
from edgert.logs import set_level
from edgert.options import restore
from edgert.runtime.libraries import let_go_of_libraries
from edgert.runtime.nodes.async_node import AsyncNode
from edgert.runtime.nodes.lending import Lending
from edgert.runtime.nodes.node import Node
from edgert.stages.raised import named
from edgert.transport.ledger import StageBlock
from edgert.transport.polling import Poll, poll_of

_POLL_AT_MOST_MS = 1000  # then it shows that it lives (``watch.py``)
_BUSY_STEPS_AT_MOST = 16  # then control is heard though there is work,
_BUSY_AT_MOST_NS = 100_000_000  # or sooner, where a step waits for a camera
_LOOK_AGAIN_S = 0.001  # at an inference that is still under way when the process is to leave
_COLLECT_EVERY_NS = 5_000_000_000
_BOOK_CPU_EVERY_NS = 200_000_000
_SETTLED_AFTER_NS = 500_000_000  # by then the first frames have read what only they need


class Loop:
    """Runs the nodes of one process until all have finished.

    Args:
        nodes: In an order in which writers come before readers.
        channel: To the supervisor.
        blocks: Places in the ledger where the process's CPU time is booked.
    """

    def __init__(
        self, nodes: Sequence[Node], channel: WorkerChannel, blocks: Sequence[StageBlock]
    ) -> None:
        self._nodes = list(nodes)
        self._channel = channel
        self._blocks = tuple(blocks)
        self._polls: dict[tuple[int, ...], Poll] = {}
        self._cpu_start_ns = time.process_time_ns()
        self._cpu_booked_ns = 0
        self._collected_ns = time.monotonic_ns()
        self._settles_ns = self._collected_ns + _SETTLED_AFTER_NS
        self._busy_steps = 0
        self._hear_by_ns = 0
        self.is_leaving = False

    def run(self) -> None:
        """Run until every node has finished, or until all are at rest after ``Leave``."""
        nodes = self._nodes
        self._show_life(time.monotonic_ns())
        for node in nodes:
            node.begin()
        while nodes and not self.is_leaving:
            progressed = False
            for node in nodes:
                if node.step():
                    progressed = True
            now_ns = time.monotonic_ns()
            if progressed and self._control_can_wait(now_ns):
                continue
            self._busy_steps = 0
            self._hear_by_ns = now_ns + _BUSY_AT_MOST_NS
            self._housekeep(now_ns)
            self._show_life(now_ns)
            if self._handle_control() or progressed:
                continue
            if any(node.finished for node in nodes):
                nodes[:] = [node for node in nodes if not node.finished]
            else:
                self._wait()
        while not all(node.settle() for node in nodes):
            self._show_life(time.monotonic_ns())
            time.sleep(_LOOK_AGAIN_S)
        self.book_cpu()
        for block in self._blocks:
            block.words[StageBlock.PROGRESS] = 0  # what comes now, closing, has a limit of its own

    def _control_can_wait(self, now_ns: int) -> bool:
        """Whether to go on with work at once; else control is heard, of which no poll has told."""
        self._busy_steps += 1
        if self._busy_steps < _BUSY_STEPS_AT_MOST and now_ns < self._hear_by_ns:
            return True
        self._channel.stir()
        return False

    def _handle_control(self) -> bool:
        message = self._channel.receive_nowait() if self._channel.may_have else None
        if message is None:
            return False
        if isinstance(message, Stop):
            for node in self._nodes:
                node.stop()
        elif isinstance(message, Deal):
            for node in self._nodes:
                node.deal_again()
        elif isinstance(message, LogLevel):
            set_level(message.level)
        elif isinstance(message, Change):
            self._change(message)
        elif isinstance(message, Lend | Resume):
            self._lend(message)
        elif isinstance(message, Leave):
            self.is_leaving = True
        return True

    def _change(self, message: Change) -> None:
        for node in self._nodes:
            stage = node.stage
            if stage.context.name == message.stage:
                with named(type(stage), stage.context.place, "in change()"):
                    stage.change(restore(stage.options, message.settings))
                stage.context.log.info("%s: goes on with other options", stage.context.place)

    def _lend(self, message: Lend | Resume) -> None:
        for node in self._nodes:
            context = node.stage.context
            if not isinstance(node, AsyncNode) or context.name != message.stage:
                continue
            node.lend(None)
            if isinstance(message, Lend):
                try:
                    node.lend(Lending(message, context, self._channel.send))
                except OSError as error:  # the trial is over, or no file of another process opens
                    self._channel.send(Lent(message.worker, message.stage, 0, str(error)))

    def _wait(self) -> None:
        fds: tuple[int, ...] = ()
        for node in self._nodes:
            waited = node.wait_fds()
            if not waited:
                return
            fds += tuple(waited)
        poll = self._polls.get(fds)
        if poll is None:
            poll = self._polls[fds] = poll_of({*fds, self._channel.fd})
        for fd, _ in poll(self._patience_ms()):
            if fd == self._channel.fd:
                self._channel.stir()

    def _patience_ms(self) -> int:
        """Return how long to wait: until a node has something to do of its own accord."""
        due_ns = min((node.due_ns for node in self._nodes if node.due_ns), default=0)
        if not due_ns:
            return _POLL_AT_MOST_MS
        left_ns = max(0, due_ns - time.monotonic_ns())
        return min(_POLL_AT_MOST_MS, -(-left_ns // 1_000_000))  # upwards: not a moment too soon

    def _show_life(self, now_ns: int) -> None:
        """Note that this process goes round: one that does not for long hangs (``watch.py``)."""
        for block in self._blocks:
            block.words[StageBlock.PROGRESS] = now_ns

    def _housekeep(self, now_ns: int) -> None:
        """Between frames, now and then: collect cycles that exceptions leave, book CPU time.

        And once, what libraries needed only to get going is let go.
        """
        if now_ns - self._cpu_booked_ns > _BOOK_CPU_EVERY_NS:
            self._cpu_booked_ns = now_ns
            self.book_cpu()
        if now_ns - self._collected_ns > _COLLECT_EVERY_NS:
            self._collected_ns = now_ns
            gc.collect(1)
        if self._settles_ns and now_ns > self._settles_ns:
            self._settles_ns = 0
            let_go_of_libraries()

    def book_cpu(self) -> None:
        """Book the process's CPU time since the loop began with each of its stages."""
        cpu_ns = time.process_time_ns() - self._cpu_start_ns
        for block in self._blocks:
            block.words[StageBlock.CPU] = cpu_ns
