"""A join of one to three inputs, several streams: never stuck, and one arrival for each frame."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgert.transport.join import Arrival, Join, Port
from edgert.transport.token import DROPPED, END, FILTERED, GAP, LOST, NONE
from tests.unit.transport.ends import Ends, edge_plan, mark, marked

SLOTS = 40
Frame = tuple[int, int]
Event = tuple[str, int, int, int]  # what, stream, sequence, reason


class Script:
    """What each input is told, in an order that a run can produce.

    Frames and the first word on each frame in order; gaps late; what a stand-in repeats at any
    later time; the last end of an input last.
    """

    def __init__(self, random: Random, ports: int, frames: list[int], *, deaths: bool) -> None:
        self.random = random
        self.deaths = deaths
        self.said: dict[Frame, list[int | None]] = defaultdict(lambda: [None] * ports)
        self.repeated: set[Frame] = set()
        self.frames = {(s, n) for s, count in enumerate(frames) for n in range(count)}
        self.inputs = [self._input(port, frames) for port in range(ports)]

    def _input(self, port: int, frames: list[int]) -> list[Event]:
        events: list[Event] = []
        left = dict.fromkeys(range(len(frames)), 0)
        while left:
            stream = self.random.choice(sorted(left))
            sequence = left[stream]
            if sequence == frames[stream]:
                del left[stream]
                events.append(("end", stream, 0, 0))
                continue
            left[stream] += 1
            events += self._first_word(port, stream, sequence)
        last = events.pop()
        self._delay_gaps(events)
        if self.deaths:
            self._repeat(events)
        return [*events, last, *([last] if self.deaths else [])]

    def _first_word(self, port: int, stream: int, sequence: int) -> list[Event]:
        choice = self.random.random()
        if choice < 0.7:
            self.said[stream, sequence][port] = NONE
            return [("frame", stream, sequence, 0)]
        if choice < 0.75 and self.deaths:
            return []  # swallowed by a worker that died
        reason = self.random.choice([FILTERED, DROPPED, LOST])
        self.said[stream, sequence][port] = reason
        return [("gap", stream, sequence, reason)]

    def _delay_gaps(self, events: list[Event]) -> None:
        for event in [event for event in events if event[0] == "gap"]:
            if self.random.random() < 0.3:
                at = events.index(event)
                events.insert(self.random.randint(at + 1, len(events)), event)
                del events[at]

    def _repeat(self, events: list[Event]) -> None:
        for event in list(events):
            if self.random.random() < 0.15:
                at = events.index(event)
                what, stream, sequence, _ = event
                self.repeated.add((stream, sequence))
                again = event if what == "end" else ("gap", stream, sequence, LOST)
                events.insert(self.random.randint(at + 1, len(events)), again)


class Stage:
    """A join over real rings that collects what arrives."""

    def __init__(self, ports: int, streams: int, *, pipes: bool) -> None:
        plan = edge_plan("e", streams=streams)
        self.ends = [Ends(SLOTS, [plan], pipes=pipes) for _ in range(ports)]
        self.join = Join([Port(str(n), ends.readers) for n, ends in enumerate(self.ends)])
        self.arrivals: dict[Frame, list[tuple[frozenset[str], int]]] = defaultdict(list)
        self.streams_ended: list[int] = []

    def tell(self, port: int, event: Event) -> None:
        what, stream, sequence, reason = event
        writer, ready = self.ends[port].writer, self.ends[port].ready[0]
        if what == "frame":
            loan = writer.loan_nowait()
            assert loan is not None
            mark(loan, stream, sequence)
            writer.commit(loan, stream, sequence)
        elif what == "gap":
            ready.send((sequence, 0, stream, GAP, reason))
        else:
            ready.send((0, 0, stream, END, NONE))

    def drain(self) -> None:
        while arrival := self.join.receive_nowait():
            self._take(arrival)
        self.streams_ended += self.join.streams_ended()

    def _take(self, arrival: Arrival) -> None:
        frame = (arrival.stream, arrival.sequence)
        self.arrivals[frame].append((frozenset(arrival.held), arrival.reason))
        for held in arrival.held.values():
            assert marked(held.reader, held.slot) == frame
            held.reader.release(held.slot, arrival.reason)

    def close(self) -> None:
        for ends in self.ends:
            free = [ends.writer.loan_nowait() for _ in range(SLOTS)]
            assert None not in free, "a slot was lost"
            ends.close()


def play(stage: Stage, script: Script, random: Random) -> None:
    left = [list(events) for events in script.inputs]
    while any(left):
        port = random.choice([n for n, events in enumerate(left) if events])
        stage.tell(port, left[port].pop(0))
        if random.random() < 0.4:
            stage.drain()
    stage.drain()


cases = given(
    ports=st.integers(1, 3),
    frames=st.lists(st.integers(0, 8), min_size=1, max_size=3),
    random=st.randoms(use_true_random=False),
)


@pytest.mark.parametrize("pipes", [True, False], ids=["pipes", "local"])
@settings(max_examples=120, deadline=None)
@cases
def test_each_frame_arrives_once(
    pipes: bool, ports: int, frames: list[int], random: Random
) -> None:
    script = Script(random, ports, frames, deaths=False)
    stage = Stage(ports, len(frames), pipes=pipes)
    play(stage, script, random)
    assert stage.join.ended
    assert sorted(stage.streams_ended) == list(range(len(frames)))
    assert set(stage.arrivals) == script.frames
    for frame, said in script.said.items():
        whole = frozenset(str(port) for port, word in enumerate(said) if word == NONE)
        assert stage.arrivals[frame] == [(whole, max(word or NONE for word in said))]
    stage.close()


@settings(max_examples=200, deadline=None)
@cases
def test_deaths_neither_stick_a_join_nor_make_a_frame_of_two(
    ports: int, frames: list[int], random: Random
) -> None:
    """Words swallowed and words repeated: a frame comes whole once, or as lost."""
    script = Script(random, ports, frames, deaths=True)
    stage = Stage(ports, len(frames), pipes=False)
    play(stage, script, random)
    assert stage.join.ended
    assert sorted(stage.streams_ended) == list(range(len(frames)))
    for frame, arrivals in stage.arrivals.items():
        whole = [arrival for arrival in arrivals if arrival[1] == NONE]
        assert len(whole) <= 1
        assert all(len(held) == ports for held, _ in whole)
        assert len(arrivals) == 1 or frame in script.repeated
    for frame, said in script.said.items():
        assert (frame in stage.arrivals) or all(word is None for word in said)
        if None not in said:
            first_held, first_reason = stage.arrivals[frame][0]
            assert first_reason == max(word or NONE for word in said)
            assert first_held == {str(n) for n, word in enumerate(said) if word == NONE}
    stage.close()


def test_streams_take_turns() -> None:
    """Several edges into one input: a busy one does not starve the others."""
    ends = [Ends(4, [edge_plan("e", streams=1)], pipes=True) for _ in range(3)]
    join = Join([Port("n", [each.readers[0] for each in ends])])
    for stream, each in enumerate(ends):
        for sequence in range(3):
            loan = each.writer.loan_nowait()
            assert loan is not None
            each.writer.commit(loan, stream, sequence)
    order = []
    while arrival := join.receive_nowait():
        order.append(arrival.stream)
    assert order == [0, 1, 2] * 3
    for each in ends:
        each.close()
