"""The ledger: every count and every slot's state, in one segment that survives any worker's death.

    | stage blocks ... | edge blocks ... | stream blocks ... |      (u64 words, then state bytes)

    stage:  the counters of STAGE_COUNTERS | the histograms of HISTOGRAMS
    edge:   the counters of EDGE_COUNTERS | how many of its streams the writer has ended
    stream: the counters of STREAM_COUNTERS | in_flight x (sequence + 1, leaves pending, outcome)
    bytes:  per edge one byte a slot (EDGE_FREE ...), written only by whoever holds the slot's token

The supervisor creates it and reads it; a word or a byte has exactly one writer at any time.
"""

from __future__ import annotations

import mmap

import msgspec

from edgert.transport.histogram import BUCKETS, bucket_of

STAGE_COUNTERS = (
    "frames",  # frames processed
    "filtered",
    "lost",
    "copied_bytes",
    "first_ns",  # monotonic, end of the first frame
    "last_ns",  # monotonic, end of the last frame
    "progress_ns",  # monotonic, when it last did anything
    "cpu_ns",  # CPU time of its process since it became ready
    "latency_max_ns",
    "device",  # number of the limited device it runs on, from 1 (permits.py)
    "permits",  # that it has of this device
    "waits_ns",  # monotonic, since when it waits for one
    "pace_ns",  # of late, from one result to the next while it has work (a moving average)
    "batches",  # inferences that had room for several frames
    "batch_frames",  # frames that were in them
    "batch_padding",  # places in them that no frame filled
)
HISTOGRAMS = ("service", "wait_in", "wait_out", "latency", "wait_batch")
EDGE_COUNTERS = ("read", "processed", "dropped", "lost")
STREAM_COUNTERS = ("read", "processed", "dropped", "lost", "ended")

SLOT_FREE, SLOT_READY, SLOT_HELD = 0, 1, 2

_WORD = 8
_EDGE_WORDS = len(EDGE_COUNTERS) + 1
_STAGE_WORDS = len(STAGE_COUNTERS) + len(HISTOGRAMS) * BUCKETS
_ENTRY_WORDS = 3
_HISTOGRAMS_AT = len(STAGE_COUNTERS)


class LedgerLayout(msgspec.Struct, frozen=True):
    """Where everything lies.

    Attributes:
        stages: Names of the stages.
        edges: Name of each edge -> slots of its ring.
        streams: Names of the streams -> frames that may be in flight.
    """

    stages: tuple[str, ...]
    edges: dict[str, int]
    streams: dict[str, int]

    @property
    def words(self) -> int:
        """Words before the state bytes."""
        streams = sum(
            len(STREAM_COUNTERS) + _ENTRY_WORDS * entries for entries in self.streams.values()
        )
        return len(self.stages) * _STAGE_WORDS + len(self.edges) * _EDGE_WORDS + streams

    @property
    def nbytes(self) -> int:
        """Bytes of the whole segment."""
        return self.words * _WORD + sum(self.edges.values())


class Ledger:
    """The ledger as one process sees it, mapped writable."""

    def __init__(self, memory: mmap.mmap, layout: LedgerLayout) -> None:
        self.layout = layout
        view = memoryview(memory)
        self._words = view[: layout.words * _WORD].cast("Q")
        self._states = view[layout.words * _WORD : layout.nbytes]

    def stage(self, name: str) -> StageBlock:
        """Return the block of a stage."""
        start = self.layout.stages.index(name) * _STAGE_WORDS
        return StageBlock(self._words[start : start + _STAGE_WORDS])

    def edge(self, name: str) -> EdgeBlock:
        """Return the block of an edge and its slots' states."""
        names = tuple(self.layout.edges)
        n = names.index(name)
        start = len(self.layout.stages) * _STAGE_WORDS + n * _EDGE_WORDS
        at = sum(self.layout.edges[other] for other in names[:n])
        return EdgeBlock(
            self._words[start : start + _EDGE_WORDS],
            self._states[at : at + self.layout.edges[name]],
        )

    def stream(self, name: str) -> StreamBlock:
        """Return the block of a stream."""
        at = len(self.layout.stages) * _STAGE_WORDS + len(self.layout.edges) * _EDGE_WORDS
        for other, entries in self.layout.streams.items():
            size = len(STREAM_COUNTERS) + _ENTRY_WORDS * entries
            if other == name:
                return StreamBlock(self._words[at : at + size])
            at += size
        raise KeyError(name)


class _Block:
    names: tuple[str, ...]

    def __init__(self, words: memoryview) -> None:
        self.words = words

    def counters(self) -> dict[str, int]:
        """Return the counters by name."""
        return dict(zip(self.names, self.words[: len(self.names)], strict=True))


class StageBlock(_Block):
    """Counters and histograms of a stage; written by its worker."""

    names = STAGE_COUNTERS
    (FRAMES, FILTERED, LOST, COPIED, FIRST, LAST, PROGRESS, CPU, LATENCY_MAX) = range(9)
    DEVICE, PERMITS, WAITS, PACE = range(9, 13)
    BATCHES, BATCH_FRAMES, BATCH_PADDING = range(13, 16)

    def record(self, histogram: int, duration_ns: int) -> None:
        """Count a duration in histogram number ``histogram`` of ``HISTOGRAMS``."""
        self.words[_HISTOGRAMS_AT + histogram * BUCKETS + bucket_of(duration_ns)] += 1

    def histogram(self, name: str) -> list[int]:
        """Return the counts of one of ``HISTOGRAMS``."""
        start = _HISTOGRAMS_AT + HISTOGRAMS.index(name) * BUCKETS
        return list(self.words[start : start + BUCKETS])


class EdgeBlock(_Block):
    """Counters of an edge, and the state of every slot towards its reader.

    ``read``, ``dropped`` and ``ENDED`` are the writer's, ``processed`` and ``lost`` the reader's.
    """

    names = EDGE_COUNTERS
    READ, PROCESSED, DROPPED, LOST, ENDED = range(5)

    def __init__(self, words: memoryview, states: memoryview) -> None:
        super().__init__(words)
        self.states = states

    def under_way(self) -> int:
        """Return how many frames the reader has not answered for yet, by the counters."""
        read, processed, dropped, lost = self.words[: EdgeBlock.ENDED]
        return max(0, int(read - processed - dropped - lost))

    def outstanding(self) -> int:
        """Return how many slots are on their way to the reader or held by it."""
        return len(self.states) - bytes(self.states).count(SLOT_FREE)


class StreamBlock(_Block):
    """Counters of a stream and the table of its frames in flight; written by its gate."""

    names = STREAM_COUNTERS
    READ, PROCESSED, DROPPED, LOST, ENDED = range(5)

    @property
    def entries(self) -> int:
        """How many frames the table has room for."""
        return (len(self.words) - len(STREAM_COUNTERS)) // _ENTRY_WORDS

    def entry_at(self, entry: int) -> int:
        """Return the word at which an entry starts: sequence + 1, leaves pending, outcome."""
        return len(STREAM_COUNTERS) + entry * _ENTRY_WORDS

    def in_flight(self) -> list[int]:
        """Return the sequences of the frames in flight."""
        firsts = (self.words[self.entry_at(entry)] for entry in range(self.entries))
        return sorted(first - 1 for first in firsts if first)
