"""Finds workers that hang, by what they note in the ledger, and has them say where they stand.

A worker's loop notes the time whenever it goes round, and the oldest frame in work with its begin.
Each worker has a file in memory (``stack/WORKER``) for the Python stacks of its threads, which
``faulthandler`` writes there when it gets STACK_SIGNAL, even out of native code.
"""

from __future__ import annotations

import os
import signal

from edgert.plan.structs import WorkerPlan
from edgert.transport.histogram import middle_ms
from edgert.transport.ledger import Ledger, StageBlock

STACK_SIGNAL = signal.SIGUSR2
STACK_WITHIN_S = 0.3
_OWN_HISTORY = 10
_SILENT_AT_MOST_S = 2.0  # with nothing to do: twice as long as the loop may wait (``loop.py``)
_STACK_BYTES_AT_MOST = 1 << 16


def why_hung(worker: WorkerPlan, ledger: Ledger, now_ns: int) -> str:
    """Return what a worker does too long; empty where it is well, or not at work."""
    blocks = {stage.name: ledger.stage(stage.name) for stage in worker.stages}
    limit_s = max(worker.restart.hang_s, *(_longest_s(block) for block in blocks.values()))
    for name, block in blocks.items():
        begun_ns = block.words[StageBlock.BUSY]
        if block.words[StageBlock.WAITS] and not block.words[StageBlock.PERMITS]:
            continue  # a batch that waits for its turn at a device: another stage is at work there
        if block.words[StageBlock.PROGRESS] and begun_ns and now_ns - begun_ns > limit_s * 1e9:
            return f"stage '{name}' has been at one frame for {(now_ns - begun_ns) / 1e9:.1f} s"
    seen_ns = max(int(block.words[StageBlock.PROGRESS]) for block in blocks.values())
    if seen_ns and now_ns - seen_ns > max(limit_s, _SILENT_AT_MOST_S) * 1e9:
        return f"it has given no sign of life for {(now_ns - seen_ns) / 1e9:.1f} s"
    return ""


def forget(worker: WorkerPlan, ledger: Ledger) -> None:
    """Take a dead worker's notes away: its successor's count from when it goes round."""
    for stage in worker.stages:
        words = ledger.stage(stage.name).words
        words[StageBlock.PROGRESS] = words[StageBlock.BUSY] = 0


def read_stack(fd: int) -> str:
    """Return what ``faulthandler`` wrote, and empty the file for the next worker."""
    written = os.pread(fd, _STACK_BYTES_AT_MOST, 0)
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    return written.decode(errors="replace").rstrip()


def _longest_s(block: StageBlock) -> float:
    """Return ten times what the longest frame so far has taken; 0 before the first."""
    counts = block.histogram("service")
    longest = max((bucket for bucket, count in enumerate(counts) if count), default=None)
    return 0.0 if longest is None else _OWN_HISTORY * middle_ms(longest) / 1e3
