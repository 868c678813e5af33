"""A frame that is lent to an heir: alone, a copy, and no other waits for longer than told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from edgert.control.messages import FramePlace, Lend, Lent
from edgert.runtime.nodes.lending import Lending
from edgert.runtime.trials.specimen import Specimen, create_specimen
from edgert.stages.base import StageContext
from edgert.stages.harness import PrivateSlot
from edgert.tensor import FrameHeader, PortSpec, TensorSpec
from edgert.transport.slot import Loan

IN = {"tensor": PortSpec("tensors", {"x": TensorSpec("f32", (4, 3))})}
OUT = {
    "outputs": PortSpec("tensors", {"y": TensorSpec("u8", (5000,)), "z": TensorSpec("i64", (2,))})
}
CONTEXT = StageContext("s", "stage 's'", IN, OUT)


@contextmanager
def kept() -> Iterator[FramePlace]:
    fd = create_specimen("s", IN, OUT)
    try:
        yield FramePlace(f"/proc/{os.getpid()}/fd/{fd}", os.fstat(fd).st_ino)
    finally:
        os.close(fd)


class Frame:
    """A frame at work: what a node has of it."""

    def __init__(self) -> None:
        self.end_ns = 0
        self.slot = PrivateSlot(OUT["outputs"])
        self.loans: dict[str, Loan] = {"outputs": self.slot.loan}
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.samples = {"tensor": PrivateSlot(IN["tensor"]).fill({"x": x}, FrameHeader(sequence=7))}

    def end(self) -> None:
        loan = self.slot.loan
        loan.inherit(self.samples["tensor"])
        loan.tensor("y")[:] = 9
        loan.tensor("z")[:] = (1, 2)
        self.end_ns = 1 << 62


def test_what_went_in_and_came_out_is_there_for_another_process() -> None:
    told: list[Lent] = []
    with kept() as place:
        lending = Lending(Lend("w", "s", place, 2), CONTEXT, told.append)
        assert lending.holds_back(1)
        assert not lending.holds_back(0)
        frame = Frame()
        lending.begin(frame, frame.samples)
        assert lending.holds_back(0)
        frame.end()
        lending.end(frame, is_good=True)
        specimen = Specimen(place, IN, OUT)
    (lent,) = told
    assert (lent.worker, lent.stage, lent.fault) == ("w", "s", "")
    assert lent.took_ns > 0
    given, made = specimen.inputs()["tensor"], specimen.outputs()["outputs"]
    assert given.header.sequence == made.header.sequence == 7
    assert given.tensors["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made.tensors["y"].tolist() == [9] * 5000
    assert made.tensors["z"].tolist() == [1, 2]
    assert lending.holds_back(0)
    assert not lending.is_over  # patient for a second at most, however long the frame took
    assert lending.due_ns - lent.took_ns < 1 << 62


def test_of_a_frame_that_is_lost_the_next_one_is_lent() -> None:
    told: list[Lent] = []
    with kept() as place:
        lending = Lending(Lend("w", "s", place, 2), CONTEXT, told.append)
        frame = Frame()
        lending.begin(frame, frame.samples)
        lending.end(Frame(), is_good=True)  # one that was under way before
        lending.end(frame, is_good=False)
        assert told == []
        assert not lending.holds_back(0)


def test_an_fd_that_is_something_else_by_now_is_refused() -> None:
    with kept() as place, kept() as other:
        stale = FramePlace(other.file, place.inode)
        with pytest.raises(FileNotFoundError):
            Specimen(stale, IN, OUT)
    with pytest.raises(FileNotFoundError):
        Specimen(place, IN, OUT)
