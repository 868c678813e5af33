"""The final account of a run: read = processed + dropped + lost, per stream and per edge.

Counts are made independently where things happen. Only where a worker died between two writes of
its own is a missing count filled in, as lost. A sum that is wrong without a death is a bug of ours
and is said, not smoothed over.
"""

from __future__ import annotations

from edgert.plan.structs import Plan
from edgert.runtime import crew
from edgert.runtime.crew import Member
from edgert.runtime.wiring import Fds
from edgert.transport.gate import settle_after_death
from edgert.transport.ledger import SLOT_FREE, EdgeBlock, Ledger
from edgert.transport.queue import PipeQueue
from edgert.wording import counted

Counts = dict[str, int]


def close_accounts(plan: Plan, ledger: Ledger, members: dict[str, Member], fds: Fds) -> list[str]:
    """Settle every stream and edge once no worker is left.

    Returns:
        What does not add up though nobody died: faults of ours.
    """
    failed = {
        name
        for member in members.values()
        if member.state in (crew.FAILED, crew.AWAY) or member.restarts
        for name in member.plan.stage_names
    }
    wrong = _close_streams(plan, ledger, fds, anybody_failed=bool(failed))
    for ring in plan.rings:
        writer = ring.writer
        for edge in ring.edges:
            block = ledger.edge(edge.name)
            died = writer in failed or edge.reader in failed
            wrong += _close_edge(edge.name, block, died=died)
    return wrong


def _close_streams(plan: Plan, ledger: Ledger, fds: Fds, *, anybody_failed: bool) -> list[str]:
    wrong = []
    for number, stream in enumerate(plan.streams):
        block = ledger.stream(stream)
        if anybody_failed:
            done = PipeQueue(fds[f"gate/{stream}/r"], -1)
            settle_after_death(done, block, plan.leaves[number])
        counts = stream_counts(ledger, stream)
        if not adds_up(counts):
            wrong.append(f"stream '{stream}': {counts}")
    return wrong


def _close_edge(name: str, block: EdgeBlock, *, died: bool) -> list[str]:
    words = block.words
    if died:
        for slot in range(len(block.states)):
            block.states[slot] = SLOT_FREE
        known = sum(words[n] for n in (EdgeBlock.PROCESSED, EdgeBlock.DROPPED, EdgeBlock.EXPIRED))
        words[EdgeBlock.READ] = max(words[EdgeBlock.READ], known)
        words[EdgeBlock.LOST] = words[EdgeBlock.READ] - known
    counts = block.counters()
    if adds_up(counts) and not block.outstanding():
        return []
    return [f"edge '{name}': {counts}, {counted(block.outstanding(), 'slot')} not given back"]


def adds_up(counts: Counts) -> bool:
    """Whether read = processed + dropped + lost."""
    return counts["read"] == counts["processed"] + counts["dropped"] + counts["lost"]


def stream_counts(ledger: Ledger, stream: str) -> Counts:
    """Return read, processed, dropped and lost of a stream."""
    counts = ledger.stream(stream).counters()
    return {key: counts[key] for key in ("read", "processed", "dropped", "lost")}


def total_counts(ledger: Ledger, streams: tuple[str, ...]) -> Counts:
    """Return read, processed, dropped and lost over all streams."""
    total = dict.fromkeys(("read", "processed", "dropped", "lost"), 0)
    for stream in streams:
        for key, count in stream_counts(ledger, stream).items():
            total[key] += count
    return total
