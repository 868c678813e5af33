"""A worker: the process in which one or more stages run.

It pins itself before anything heavy is loaded (new threads inherit the affinity), opens its stages,
says READY, waits for START, and runs its loop until every stream has ended.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import logging
import os
import traceback
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from edgert.control.channel import WorkerChannel
from edgert.control.messages import (
    Failed,
    Finished,
    Go,
    InputFault,
    Left,
    LogLevel,
    Ready,
    SaidFault,
    Start,
    Stop,
    ToWorker,
    TryFrame,
    Trying,
    Warm,
)
from edgert.device.cores import pin
from edgert.device.scheduling import work_in_batches
from edgert.errors import (
    EXIT_BUG,
    EXIT_DONE,
    DeviceLostError,
    EdgertError,
    ResourceError,
)
from edgert.logs import set_level
from edgert.plan.opening import Before, make_stage, open_stage
from edgert.plan.structs import StagePlan, WorkerOrder
from edgert.processes import give_memory_back
from edgert.runtime.last_words import said, says_all
from edgert.runtime.loop import Loop
from edgert.runtime.nodes.async_node import AsyncNode
from edgert.runtime.nodes.batch_node import BatchNode
from edgert.runtime.nodes.company import company_of
from edgert.runtime.nodes.feed_watch import FeedWatch
from edgert.runtime.nodes.node import Node
from edgert.runtime.nodes.outputs import Outputs
from edgert.runtime.nodes.source_node import SourceNode
from edgert.runtime.nodes.sync_node import SyncNode
from edgert.runtime.trials.candidate import Candidate
from edgert.runtime.turns import permits_for
from edgert.runtime.watch import STACK_SIGNAL
from edgert.runtime.wiring import Wiring
from edgert.runtime.worker_log import ToSupervisorHandler
from edgert.stages.base import AsyncStage, BatchStage, Source, Stage
from edgert.stages.raised import named
from edgert.transport.gate import FlowGate
from edgert.transport.join import Join, Port
from edgert.transport.ledger import StageBlock
from edgert.transport.permits import Permits


class Worker:
    """One worker process, from its order to its exit code."""

    def __init__(self, order: WorkerOrder, fds: Mapping[str, int], results_fd: int) -> None:
        self._order = order
        self._results_fd = results_fd
        self._name = order.worker.name
        self._fds = fds
        self._stages: list[Stage] = []
        self._is_stopped = False
        self._is_leaving = False
        with contextlib.suppress(ResourceError):  # said by _run, which can speak
            pin(order.worker.cores)  # before anything, ZeroMQ too, starts a thread
        faulthandler.register(STACK_SIGNAL, fds[f"stack/{self._name}"], all_threads=True)
        self._channel = WorkerChannel(order.control, order.identity)

    def run(self) -> int:
        """Run to the end; whatever goes wrong is told to the supervisor.

        Returns:
            The exit code of the process.
        """
        try:
            self._run()
        except EdgertError as error:
            trace = "" if says_all(error) else traceback.format_exc()
            told = Failed(self._name, said(error), error.exit_code, trace, type(error).__name__)
            self._channel.send(told)
            code = error.exit_code
        except Exception as error:  # noqa: BLE001  the last catcher of a process: told, with its trace
            place = f"worker '{self._name}'"
            fault = SaidFault(place, f"{type(error).__name__}: {error}", "")
            self._channel.send(Failed(self._name, (fault,), EXIT_BUG, traceback.format_exc()))
            code = EXIT_BUG
        else:
            self._channel.send(Left(self._name) if self._is_leaving else Finished(self._name))
            code = EXIT_DONE
        self._channel.close()
        return code

    def _run(self) -> None:
        self._send_logs()
        pin(self._order.worker.cores)
        try:
            for plan in self._order.worker.stages:
                self._open(plan)
            reports = {stage.context.name: stage.context.report for stage in self._stages}
            if not _infers_on_cpu(reports.values()):
                work_in_batches()
            self._wait_place()
            nodes, wiring = self._wire()
            if self._order.restarts:
                self._recover(nodes, wiring)
            give_memory_back()
            self._channel.send(Ready(self._name, reports))
            self._wait_start(nodes)
            blocks = [wiring.ledger.stage(stage.context.name) for stage in self._stages]
            gc.collect()
            gc.freeze()
            gc.disable()
            loop = Loop(nodes, self._channel, blocks)
            loop.run()
            self._is_leaving = loop.is_leaving
        except DeviceLostError:
            # A lost device may never answer; it goes with the process, and the others are closed.
            self._stages = [one for one in self._stages if not isinstance(one, AsyncStage)]
            raise
        finally:
            self._close()

    def _send_logs(self) -> None:
        root = logging.getLogger()
        root.handlers[:] = [ToSupervisorHandler(self._channel, self._name)]
        root.setLevel(logging.WARNING)
        set_level(self._order.log_level)

    def _wait_start(self, nodes: list[Node]) -> None:
        while not self._is_stopped and not isinstance(message := self._channel.wait(), Start):
            self._heed(message)
        if self._is_stopped:
            for node in nodes:  # stopped before it began: the streams are empty
                node.stop()

    def _heed(self, message: ToWorker) -> None:
        """Heed what may be said at any time while the stages are opened."""
        self._is_stopped |= isinstance(message, Stop)
        if isinstance(message, LogLevel):
            set_level(message.level)

    def _close(self) -> None:
        """Close every stage, the first fault of which is raised when all are closed."""
        faults: list[EdgertError] = []
        for stage in self._stages:
            try:
                with named(type(stage), stage.context.place, "in close()"):
                    stage.close()
            except EdgertError as error:  # the others' files must be closed all the same
                faults.append(error)
        self._stages.clear()
        if faults:
            raise faults[0]

    def _recover(self, nodes: list[Node], wiring: Wiring) -> None:
        """Let every stage go on where the dead worker stopped, those that write first."""
        ledger, order = wiring.ledger, self._order
        for node, plan in zip(nodes, order.worker.stages, strict=True):
            if isinstance(node, SourceNode):
                stream = plan.streams[0]
                blocks = {
                    leaf: ledger.stage(order.leaf_names[leaf]) for leaf in order.leaves[stream]
                }
                node.settle_accounts(
                    {leaf: block.mark(StageBlock.DONE, stream) for leaf, block in blocks.items()}
                )
            in_flight = {
                stream: ledger.stream(order.streams[stream]).in_flight() for stream in plan.streams
            }
            set_aside = {(s, n) for stage, s, n in order.set_aside if stage == plan.name}
            node.recover(in_flight, set_aside)

    def _wait_place(self) -> None:
        """Opened beside another process, wait until that has left its place."""
        if self._order.is_heir:
            self._channel.send(Warm(self._name))
            candidate = Candidate(self._stages, self._order, self._channel.send)
            while not isinstance(message := self._channel.wait(), Go):
                if isinstance(message, TryFrame):
                    candidate.try_frame(message)
                self._heed(message)
            candidate.close()

    def _wire(self) -> tuple[list[Node], Wiring]:
        wiring = Wiring(self._order, self._fds, self._order.worker.stage_names)
        plans = self._order.worker.stages
        stages = zip(self._stages, plans, strict=True)
        return [self._node(stage, plan, wiring) for stage, plan in stages], wiring

    def _open(self, plan: StagePlan) -> None:
        order = self._order
        before = self._before(plan.name)
        stage = make_stage(plan, order.streams, order.folder, before, self._results_fd)
        open_stage(stage)
        self._stages.append(stage)
        must_be_there = order.require == "all" and not order.restarts
        if must_be_there and isinstance(stage, Source) and stage.feed:
            stage.feed.wait_online()

    def _before(self, stage: str) -> Before:
        order = self._order
        return Before(
            order.restarts,
            order.refused.get(stage, {}),
            order.lost.get(stage, {}),
            partial(self._try_device, stage),
        )

    def _try_device(
        self, stage: str, device: str, within_s: float, refused: Mapping[str, str]
    ) -> None:
        """Tell the supervisor what is tried, before it may take this process down."""
        self._channel.send(Trying(self._name, stage, device, within_s, dict(refused)))
        while not isinstance(message := self._channel.wait(), Go):
            self._heed(message)

    def _node(self, stage: Stage, plan: StagePlan, wiring: Wiring) -> Node:
        rings = {port: wiring.writer(ring) for port, ring in plan.outputs.items()}
        leaves = self._order.leaves
        done = {
            stream: wiring.done_queue(stream)
            for stream in plan.streams
            if plan.is_source or plan.leaf in leaves[stream]
        }
        block = wiring.ledger.stage(plan.name)
        outputs = Outputs(rings, plan.leaf, done, block)
        if isinstance(stage, Source):
            return self._source_node(stage, plan, block, outputs, wiring)
        ports = [Port(port, readers) for port, readers in wiring.reader_ports(plan).items()]
        join = Join(ports)
        permits = self._permits(stage, wiring)
        batching = stage.batching if isinstance(stage, BatchStage) else None
        if isinstance(stage, BatchStage) and batching:
            in_flight = wiring.ledger.layout.streams
            may_come = {stream: in_flight[self._order.streams[stream]] for stream in plan.streams}
            company = company_of(plan, self._order, join, wiring.ledger)
            return BatchNode(stage, block, outputs, join, batching, may_come, permits, company)
        if isinstance(stage, AsyncStage):
            return AsyncNode(stage, block, outputs, join, permits)
        return SyncNode(stage, block, outputs, join)

    def _source_node(
        self, stage: Source, plan: StagePlan, block: StageBlock, outputs: Outputs, wiring: Wiring
    ) -> SourceNode:
        stream, order = plan.streams[0], self._order
        counts = wiring.ledger.stream(order.streams[stream])
        gate = FlowGate(wiring.done_queue(stream), counts, order.leaves[stream])
        watch = None
        if stage.feed is not None:
            watch = FeedWatch(stage.feed, counts)
        tell = self._tell_input_fault
        return SourceNode(stage, block, outputs, gate, stream, order.max_frames, tell, watch)

    def _permits(self, stage: Stage, wiring: Wiring) -> Permits | None:
        context = stage.context
        device = context.report.get("device", {}).get("actual", "")
        turns = self._order.turns
        return permits_for(turns, context.name, device, wiring.ledger, self._fds, context.log)

    def _tell_input_fault(self, error: EdgertError) -> None:
        self._channel.send(InputFault(self._name, said(error), error.exit_code))


def _infers_on_cpu(reports: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a stage of this process keeps the cores busy: a model that landed on the CPU."""
    devices = [report["device"]["actual"] for report in reports if "device" in report]
    return any(device.endswith(":CPU") for device in devices)


def main(order: WorkerOrder, fds: list[int], results_fd: int) -> int:
    """Run a worker in this freshly forked process; returns its exit code."""
    return Worker(order, dict(zip(order.fd_keys, fds, strict=True)), results_fd).run()


def exit_with(code: int) -> None:
    """End this process without running what its parent registered at exit."""
    logging.shutdown()
    os._exit(code)
