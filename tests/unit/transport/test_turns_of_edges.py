"""Edges of one port take turns: none starves, and each has the turns of its priority."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from edgert.transport.join import Join, Port
from edgert.transport.token import DROPPED, NONE
from tests.unit.transport.ends import Ends, edge_plan, mark

HOUR_NS = 3_600_000_000_000


class Streams:
    """A ring for each stream, all read by one port."""

    def __init__(self, priorities: Sequence[int], max_age_ns: int) -> None:
        self.ends = [
            Ends(16, [edge_plan("e", priority=each, max_age_ns=max_age_ns)], pipes=False)
            for each in priorities
        ]
        self.join = Join([Port("n", [ends.readers[0] for ends in self.ends])])
        self.sent = [0] * len(priorities)

    def send(self, stream: int) -> None:
        loan = self.ends[stream].writer.loan_nowait()
        assert loan is not None
        mark(loan, stream, self.sent[stream])
        self.ends[stream].writer.commit(loan, stream, self.sent[stream])
        self.sent[stream] += 1

    def take(self) -> int | None:
        """Return the stream of the next frame, given back at once."""
        arrival = self.join.receive_nowait()
        if arrival is None:
            return None
        for held in arrival.held.values():
            held.reader.release(held.slot, arrival.reason)
        return arrival.stream


@contextmanager
def streams(*priorities: int, max_age_ns: int = 0) -> Iterator[Streams]:
    made = Streams(priorities, max_age_ns)
    yield made
    for ends in made.ends:
        ends.close()


def test_a_fast_stream_waits_for_a_slow_one_after_each_frame() -> None:
    with streams(1, 1) as both:
        for _ in range(10):
            both.send(0)
        for _ in range(2):
            both.send(1)
        assert [both.take() for _ in range(12)] == [0, 1, 0, 1, *[0] * 8]
        assert both.take() is None


@pytest.mark.parametrize("priorities", [(3, 1), (1, 2), (2, 3)])
def test_under_load_each_edge_has_the_turns_of_its_priority(priorities: tuple[int, int]) -> None:
    with streams(*priorities) as both:
        for _ in range(12):
            both.send(0)
            both.send(1)
        rounds = 12 // max(priorities)
        taken = [both.take() for _ in range(rounds * sum(priorities))]
        assert [taken.count(stream) for stream in (0, 1)] == [rounds * each for each in priorities]


def test_an_edge_without_frames_loses_its_turn_and_no_time() -> None:
    with streams(5, 1) as both:
        both.send(1)
        both.send(1)
        assert [both.take(), both.take(), both.take()] == [1, 1, None]


def test_a_frame_that_is_too_old_arrives_as_dropped_and_is_counted() -> None:
    with streams(1, max_age_ns=HOUR_NS) as one:
        # ``mark`` leaves the header as it is: captured at 0, when the machine was started.
        loan = one.ends[0].writer.loan_nowait()
        assert loan is not None
        loan.set_header(loan.header._replace(captured_ns=-HOUR_NS))
        mark(loan, 0, 0)
        one.ends[0].writer.commit(loan, 0, 0)
        arrival = one.join.receive_nowait()
        assert arrival is not None
        assert arrival.reason == DROPPED
        (held,) = arrival.held.values()
        held.reader.release(held.slot, arrival.reason)
        counts = one.ends[0].blocks[0].counters()
        assert counts == {"read": 1, "processed": 0, "dropped": 1, "lost": 0}
        assert one.ends[0].blocks[0].under_way() == 0


def test_an_edge_that_rejects_gives_its_slot_back_at_once() -> None:
    ends = Ends(8, [edge_plan("e", depth=2, rejects=True)], pipes=False)
    for sequence in range(20):
        loan = ends.writer.loan_nowait()
        assert loan is not None
        mark(loan, 0, sequence)
        ends.writer.commit(loan, 0, sequence)
    assert ends.blocks[0].counters() == {"read": 20, "processed": 0, "dropped": 18, "lost": 0}
    tokens = [ends.readers[0].receive_nowait() for _ in range(20)]
    assert [token[0] for token in tokens if token] == list(range(20))
    assert sum(token[4] == NONE for token in tokens if token) == 2
    ends.close()
