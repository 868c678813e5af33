"""Frames of several workers, put in order: any interleaving, gaps, early ends, and deaths."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgert.transport.merge import MergedReader
from edgert.transport.token import DROPPED, END, FILTERED, FRAME, GAP, LOST, NONE, Token
from tests.unit.transport.ends import Ends, edge_plan, mark, marked

SLOTS = 40
Frame = tuple[int, int]
Event = tuple[str, int, int, int]  # what, stream, sequence, reason


class Workers:
    """The workers of one stage, each with its ring, and the reader of them all."""

    def __init__(self, workers: int, streams: int, *, pipes: bool = False) -> None:
        plan = edge_plan("e", streams=streams)
        self.ends = [Ends(SLOTS, [plan], pipes=pipes) for _ in range(workers)]
        self.reader = MergedReader([each.readers[0] for each in self.ends])
        self.received: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.ended: list[int] = []

    def tell(self, worker: int, event: Event) -> None:
        what, stream, sequence, reason = event
        writer = self.ends[worker].writer
        if what == "frame":
            loan = writer.loan_nowait()
            assert loan is not None
            mark(loan, stream, sequence)
            writer.commit(loan, stream, sequence)
        elif what == "gap":
            writer.gap(stream, sequence, reason)
        else:
            writer.end(stream)

    def drain(self) -> None:
        while token := self.reader.receive_nowait():
            self._take(token)

    def _take(self, token: Token) -> None:
        sequence, slot, stream, kind, reason = token
        if kind == END:
            self.ended.append(stream)
            return
        assert stream not in self.ended
        if kind == FRAME:
            assert marked(self.reader, slot) == (stream, sequence)
            self.reader.release(slot, NONE)
        else:
            assert kind == GAP
        self.received[stream].append((sequence, reason))

    def close(self) -> None:
        for each in self.ends:
            assert None not in [each.writer.loan_nowait() for _ in range(SLOTS)], "a slot was lost"
            each.close()


def shared_out(random: Random, workers: int, frames: list[int]) -> list[list[Event]]:
    """Share frames out among workers: each frame to one of them, each end to all."""
    events: list[list[Event]] = [[] for _ in range(workers)]
    idle = {random.randrange(workers + 1)}  # perhaps one that is given nothing
    busy = [n for n in range(workers) if n not in idle] or [0]
    for stream, count in enumerate(frames):
        for sequence in range(count):
            reason = random.choice([NONE, NONE, NONE, FILTERED, DROPPED, LOST])
            what = "gap" if reason else "frame"
            events[random.choice(busy)].append((what, stream, sequence, reason))
    for each in events:
        random.shuffle(each)  # a worker that reads several writers has them in any order
        for stream in range(len(frames)):
            last = max((n for n, event in enumerate(each) if event[1] == stream), default=-1)
            each.insert(random.randint(last + 1, len(each)), ("end", stream, 0, 0))
    return events


def play(workers: Workers, events: list[list[Event]], random: Random) -> None:
    while any(events):
        number = random.choice([n for n, each in enumerate(events) if each])
        workers.tell(number, events[number].pop(0))
        if random.random() < 0.4:
            workers.drain()
    workers.drain()


cases = given(
    count=st.integers(1, 4),
    frames=st.lists(st.integers(0, 8), min_size=1, max_size=3),
    random=st.randoms(use_true_random=False),
)


@pytest.mark.parametrize("pipes", [True, False], ids=["pipes", "local"])
@settings(max_examples=120, deadline=None)
@cases
def test_every_frame_comes_once_and_in_order(
    pipes: bool, count: int, frames: list[int], random: Random
) -> None:
    workers = Workers(count, len(frames), pipes=pipes)
    events = shared_out(random, count, frames)
    said = {(e[1], e[2]): e[3] for each in events for e in each if e[0] != "end"}
    play(workers, events, random)
    assert sorted(workers.ended) == list(range(len(frames)))
    for stream, wanted in enumerate(frames):
        assert workers.received[stream] == [(n, said[stream, n]) for n in range(wanted)]
    workers.close()


@settings(max_examples=200, deadline=None)
@cases
def test_what_died_with_a_worker_is_lost_and_what_was_said_twice_counts_once(
    count: int, frames: list[int], random: Random
) -> None:
    """One worker's words are swallowed or repeated by its stand-in, its end comes last."""
    workers = Workers(count, len(frames))
    events = shared_out(random, count, frames)
    dead = events[0]
    swallowed = {e[1:3] for e in dead if e[0] != "end" and random.random() < 0.3}
    kept = [e for e in dead if e[0] != "end" and e[1:3] not in swallowed]
    repeated = [("gap", e[1], e[2], LOST) for e in kept if random.random() < 0.3]
    events[0] = [*kept, *repeated]
    play(workers, events, random)
    for stream in range(len(frames)):
        for _ in range(2):
            workers.tell(0, ("end", stream, 0, 0))
    workers.drain()
    assert set(workers.ended) == set(range(len(frames)))
    for stream in range(len(frames)):
        sequences = [sequence for sequence, _ in workers.received[stream]]
        assert sequences == list(range(len(sequences)))
        trailing = {(stream, n) for n in range(len(sequences), frames[stream])}
        assert trailing <= swallowed  # nobody has heard of them: the stand-in tells the gate
    for stream, sequence in swallowed - {(s, n) for s, f in enumerate(frames) for n in range(f)}:
        assert (sequence, LOST) in workers.received[stream]
    workers.close()


def test_a_frame_counts_more_than_the_gap_of_a_stand_in() -> None:
    """The gap is read first, the frame of another worker was sent before it."""
    workers = Workers(2, 1)
    workers.tell(1, ("frame", 0, 0, NONE))
    workers.tell(0, ("gap", 0, 0, LOST))
    workers.drain()
    assert workers.received[0] == [(0, NONE)]
    workers.tell(0, ("frame", 0, 0, NONE))  # late, and for nobody
    workers.drain()
    assert workers.received[0] == [(0, NONE)]
    assert workers.ends[0].blocks[0].counters()["lost"] == 1
    workers.close()
