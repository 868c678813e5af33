"""The ledger: every count and every slot's state, in one segment that survives any worker's death.

    | stage blocks ... | edge blocks ... | stream blocks ... |      (u64 words, then state bytes)

    stage:  the counters of STAGE_COUNTERS | the histograms of HISTOGRAMS |
            streams x (working, begun, done)
    edge:   the counters of EDGE_COUNTERS | how many of its streams the writer has ended | expired |
            streams x (sent, GAPS_KEPT gaps)
    stream: the counters of STREAM_COUNTERS | texts of live sources, STREAM_TEXTS x TEXT_BYTES |
            in_flight x (sequence + 1, leaves pending, outcome)
    bytes:  per edge one byte a slot (SLOT_FREE ...), written only by whoever holds the slot's token

The supervisor creates it and reads it; a word or a byte has exactly one writer at any time.

The words by stream are water marks, from which whoever takes a dead worker's place knows how far it
had come (``recovery.py``):

    working  sequence + 1 of the frame last begun
    begun    (sequence + 1) << 2 | outcome, before the first token of a frame leaves
    done     the same, after the last token of it has left
    sent     sequence + 1 of the last token on an edge, after it was sent; ENDED_MARK after the end
    gaps     as ``begun``, before a gap is sent: gap n at place n % GAPS_KEPT; gaps have no slots
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
    "busy_since_ns",  # monotonic, when the oldest frame in work was begun; 0 for none
    "away",  # 1 while others of its stage take its frames; written by the supervisor
)
HISTOGRAMS = ("service", "wait_in", "wait_out", "latency", "wait_batch")
EDGE_COUNTERS = ("read", "processed", "dropped", "lost")
STREAM_COUNTERS = (
    *("read", "processed", "dropped", "lost"),
    "ended",  # 1 when no frame enters any more
    "state",  # of a live source, by number (stages/live.py); 0 for any other
    "reconnects",
    "epochs",
    "scaled",  # frames that were larger than their slot
    "damaged",  # frames that the decoder could give in part only
)
STREAM_TEXTS = ("reason", "media")
TEXT_BYTES = 160

SLOT_FREE, SLOT_READY, SLOT_HELD, SLOT_RELEASED, SLOT_BACK, SLOT_SUSPECT = range(6)
"""Free | its token is on its way to the reader | the reader has it | its token is on its way back
| it comes back undone, to go to another worker of the stage | so does it, after its process died.

The writer makes a slot free again when the token has come back: until then nobody writes to it.
"""
SLOT_UNDONE = frozenset({SLOT_READY, SLOT_HELD, SLOT_BACK, SLOT_SUSPECT})

ENDED_MARK = 1 << 63
GAPS_KEPT = 31

_WORD = 8
_EDGE_WORDS = len(EDGE_COUNTERS) + 2
_HISTOGRAMS_AT = len(STAGE_COUNTERS)
_MARKS_AT = _HISTOGRAMS_AT + len(HISTOGRAMS) * BUCKETS
_MARKS = 3
_ENTRY_WORDS = 3
_ENTRIES_AT = len(STREAM_COUNTERS) + len(STREAM_TEXTS) * TEXT_BYTES // _WORD


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
        streams = sum(_ENTRIES_AT + _ENTRY_WORDS * entries for entries in self.streams.values())
        return len(self.stages) * self.stage_words + len(self.edges) * self.edge_words + streams

    @property
    def stage_words(self) -> int:
        """Words of a stage."""
        return _MARKS_AT + _MARKS * len(self.streams)

    @property
    def edge_words(self) -> int:
        """Words of an edge."""
        return _EDGE_WORDS + (1 + GAPS_KEPT) * len(self.streams)

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
        size = self.layout.stage_words
        start = self.layout.stages.index(name) * size
        return StageBlock(self._words[start : start + size])

    def edge(self, name: str) -> EdgeBlock:
        """Return the block of an edge and its slots' states."""
        names = tuple(self.layout.edges)
        n = names.index(name)
        size = self.layout.edge_words
        start = len(self.layout.stages) * self.layout.stage_words + n * size
        at = sum(self.layout.edges[other] for other in names[:n])
        return EdgeBlock(
            self._words[start : start + size],
            self._states[at : at + self.layout.edges[name]],
        )

    def stream(self, name: str) -> StreamBlock:
        """Return the block of a stream."""
        layout = self.layout
        at = len(layout.stages) * layout.stage_words + len(layout.edges) * layout.edge_words
        for other, entries in self.layout.streams.items():
            size = _ENTRIES_AT + _ENTRY_WORDS * entries
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
    BATCHES, BATCH_FRAMES, BATCH_PADDING, BUSY, AWAY = range(13, 18)
    WORKING, BEGUN, DONE = range(_MARKS_AT, _MARKS_AT + _MARKS)
    """Of stream 0; those of stream n are ``n * MARKS`` further on."""
    MARKS = _MARKS

    def mark(self, which: int, stream: int) -> int:
        """Return ``WORKING``, ``BEGUN`` or ``DONE`` of a stream."""
        return int(self.words[which + stream * _MARKS])

    def is_done(self, stream: int, sequence: int) -> bool:
        """Whether every token of a frame has left."""
        return self.mark(self.DONE, stream) >> 2 > sequence

    def was_done_last(self, stream: int, sequence: int) -> bool:
        """Whether a frame is the one that was passed on last, in whatever order they came."""
        return self.mark(self.DONE, stream) >> 2 == sequence + 1

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
    So are the frames ``EXPIRED``, which ``counters`` adds to those dropped.
    """

    names = EDGE_COUNTERS
    READ, PROCESSED, DROPPED, LOST, ENDED, EXPIRED = range(6)

    SENT = _EDGE_WORDS
    SPAN = 1 + GAPS_KEPT
    """``SENT`` is of stream 0, those of stream n are ``n * SPAN`` further on; gaps follow it."""

    def sent(self, stream: int) -> int:
        """Return sequence + 1 of the last token of a stream, with ENDED_MARK after its end."""
        return int(self.words[self.SENT + stream * self.SPAN])

    def gap_at(self, stream: int, sequence: int) -> int:
        """Return the word that keeps a gap."""
        return self.SENT + stream * self.SPAN + 1 + sequence % GAPS_KEPT

    def gap(self, stream: int, sequence: int) -> int:
        """Return why a frame was said not to come; 0 (NONE) where that was not said."""
        kept = int(self.words[self.gap_at(stream, sequence)])
        return kept & 3 if kept >> 2 == sequence + 1 else 0

    def __init__(self, words: memoryview, states: memoryview) -> None:
        super().__init__(words)
        self.states = states

    def counters(self) -> dict[str, int]:
        """Return the counters by name."""
        counts = super().counters()
        return {**counts, "dropped": counts["dropped"] + self.words[EdgeBlock.EXPIRED]}

    def under_way(self) -> int:
        """Return how many frames the reader has not answered for yet, by the counters."""
        counts = self.counters()
        answered = counts["processed"] + counts["dropped"] + counts["lost"]
        return max(0, counts["read"] - answered)

    def outstanding(self) -> int:
        """Return how many slots are on their way to the reader or held by it."""
        return sum(state in SLOT_UNDONE for state in bytes(self.states))


class StreamBlock(_Block):
    """Counters of a stream and the table of its frames in flight; written by its gate."""

    names = STREAM_COUNTERS
    READ, PROCESSED, DROPPED, LOST, ENDED, STATE, RECONNECTS, EPOCHS, SCALED, DAMAGED = range(10)

    def text(self, name: str) -> str:
        """Return one of ``STREAM_TEXTS``."""
        return bytes(self._text(name)).rstrip(b"\0").decode(errors="ignore")

    def set_text(self, name: str, text: str) -> None:
        """Write one of ``STREAM_TEXTS``, as far as there is room for it."""
        self._text(name)[:] = text.encode()[:TEXT_BYTES].ljust(TEXT_BYTES, b"\0")

    def _text(self, name: str) -> memoryview:
        start = len(STREAM_COUNTERS) + STREAM_TEXTS.index(name) * TEXT_BYTES // _WORD
        return self.words[start : start + TEXT_BYTES // _WORD].cast("B")

    @property
    def entries(self) -> int:
        """How many frames the table has room for."""
        return (len(self.words) - _ENTRIES_AT) // _ENTRY_WORDS

    def entry_at(self, entry: int) -> int:
        """Return the word at which an entry starts: sequence + 1, leaves pending, outcome."""
        return _ENTRIES_AT + entry * _ENTRY_WORDS

    def in_flight(self) -> list[int]:
        """Return the sequences of the frames in flight."""
        firsts = (self.words[self.entry_at(entry)] for entry in range(self.entries))
        return sorted(first - 1 for first in firsts if first)
