"""How a restarted worker takes up its inputs where the dead one left them.

Nothing is guessed: what a dead reader had in its hands stands in the ledger, and what left no trace
(a gap or an end that was received and not passed on, a frame between pipe and ledger) follows from
what the writer has sent, what still waits in the pipe, and what the stage has passed on:

    a gap that was sent, neither waiting nor done       comes now
    held, done                                          given back, processed
    held, not done                                      received first: tried once more
    held, set aside by the supervisor                   given back, lost

Told twice, a frame or an end counts once: gates, joins and rings see to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from edgert.transport.ledger import (
    ENDED_MARK,
    SLOT_BACK,
    SLOT_FREE,
    SLOT_HELD,
    SLOT_READY,
    SLOT_RELEASED,
    SLOT_SUSPECT,
    EdgeBlock,
    StageBlock,
)
from edgert.transport.reader import RingReader
from edgert.transport.slot import frame_of
from edgert.transport.token import AGAIN, END, FRAME, GAP, LOST, NONE, Token

Frame = tuple[int, int]
"""(stream, sequence)"""


def recover(
    reader: RingReader,
    stage: StageBlock,
    in_flight: Mapping[int, Iterable[int]],
    set_aside: Set[Frame],
) -> int:
    """Have a reader go on where a dead one stopped.

    Args:
        reader: The new reader; its stage has received nothing yet.
        stage: The stage that reads.
        in_flight: Stream -> the frames that its gate still waits for.
        set_aside: Frames that are not tried again.

    Returns:
        How many frames are tried once more.
    """
    sent = {stream: reader.block.sent(stream) for stream in reader.plan.streams}
    waiting = reader.receive_waiting()  # after ``sent`` was read: what it says has left
    known = {(stream, sequence) for sequence, _, stream, kind, _ in waiting if kind != END}
    # Workers of one stage may be given frames in any order; the last one is not given back yet.
    is_done = stage.was_done_last if reader.plan.shared else stage.is_done
    retried: list[Token] = []
    lost: list[Token] = []
    for slot, frame in _in_dead_hands(reader, sent, waiting):
        if is_done(*frame):
            _let_go(reader, slot, frame, NONE)
        elif frame in set_aside:
            _let_go(reader, slot, frame, LOST)
            lost.append((frame[1], 0, frame[0], GAP, LOST))
        else:
            reader.block.states[slot] = SLOT_HELD
            retried.append((frame[1], slot, frame[0], FRAME, NONE))
            known.add(frame)
    gaps = _gaps(reader.block, stage, in_flight, known)
    ends = _ends(sent, waiting)
    reader.receive_first([*sorted([*retried, *lost, *gaps]), *waiting, *ends], len(retried))
    return len(retried)


def _in_dead_hands(
    reader: RingReader, sent: Mapping[int, int], waiting: Iterable[Token]
) -> list[tuple[int, Frame]]:
    """Return slots that neither wait nor are free; those on their way back are sent once more."""
    states = reader.block.states
    announced = {
        slot
        for _, slot, _, kind, _ in waiting
        if kind == FRAME or (kind == AGAIN and states[slot] == SLOT_READY)
    }
    found = []
    for slot in range(len(states)):
        frame = frame_of(reader.memory, reader.ring.layout, slot)
        state = states[slot]  # after the frame: while it is on its way back nobody writes to it
        if slot in announced or state in (SLOT_FREE, SLOT_BACK, SLOT_SUSPECT):
            continue
        if state == SLOT_RELEASED:
            reader.give_back(slot, *frame)
        elif state != SLOT_READY or frame[1] < sent[frame[0]] & ~ENDED_MARK:
            found.append((slot, frame))
    return found


def _let_go(reader: RingReader, slot: int, frame: Frame, outcome: int) -> None:
    reader.block.words[EdgeBlock.LOST if outcome == LOST else EdgeBlock.PROCESSED] += 1
    reader.give_back(slot, *frame)


def _gaps(
    edge: EdgeBlock,
    stage: StageBlock,
    in_flight: Mapping[int, Iterable[int]],
    known: Set[Frame],
) -> list[Token]:
    return [
        (sequence, 0, stream, GAP, reason)
        for stream, sequences in in_flight.items()
        for sequence in sequences
        if (reason := edge.gap(stream, sequence))
        and (stream, sequence) not in known
        and not stage.is_done(stream, sequence)
    ]


def _ends(sent: Mapping[int, int], waiting: Iterable[Token]) -> list[Token]:
    waiting_ends = {stream for _, _, stream, kind, _ in waiting if kind == END}
    return [
        (0, 0, stream, END, NONE)
        for stream, last in sent.items()
        if last & ENDED_MARK and stream not in waiting_ends
    ]
