"""One frame of a stage kept aside, for two processes: what went in, and what came out.

    | a slot for each input port | a slot for each output port |    ports in alphabetical order

A copy: the frame itself goes its way, and its slots are used again. A segment without a name,
which the supervisor has; workers that are there already open it by way of /proc.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator, Mapping

from edgert.control.messages import FramePlace
from edgert.stages.base import Ports
from edgert.transport.address import address_of_map
from edgert.transport.segment import create_segment
from edgert.transport.slot import Loan, Sample, SlotLayout


class Specimen:
    """The mapped segment.

    Args:
        place: Where it is.
        inputs: What the stage gets.
        outputs: What it gives.

    Raises:
        OSError: It is not there any more, or not for this process.
    """

    def __init__(self, place: FramePlace, inputs: Ports, outputs: Ports) -> None:
        fd = os.open(place.file, os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_ino != place.inode:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place.file)
            places = _places(inputs, outputs)
            maps = {
                key: (mmap.mmap(fd, layout.slot_bytes, offset=at), layout)
                for key, layout, at in places
            }
        finally:
            os.close(fd)
        self._inputs = {name: maps[f"in/{name}"] for name in inputs}
        self._outputs = {name: maps[f"out/{name}"] for name in outputs}

    def keep_inputs(self, samples: Mapping[str, Sample]) -> None:
        """Copy what a stage gets; the rings of several streams may be laid out in several ways."""
        for port, sample in samples.items():
            memory, layout = self._inputs[port]
            loan = Loan(memory, layout, 0, address_of_map(memory))
            loan.clear()
            loan.inherit(sample)
            for name, array in sample.tensors.items():
                loan.tensor(name, array.shape)[...] = array
            if layout.metadata_bytes:
                loan.set_metadata(sample.metadata)
            loan.finish()

    def keep_outputs(self, loans: Mapping[str, Loan]) -> None:
        """Copy what a stage gave."""
        for port, loan in loans.items():
            loan.copy_to(self._outputs[port][0])

    def inputs(self) -> dict[str, Sample]:
        """Return what was kept of the inputs."""
        return _samples(self._inputs)

    def outputs(self) -> dict[str, Sample]:
        """Return what was kept of the outputs."""
        return _samples(self._outputs)


def create_specimen(stage: str, inputs: Ports, outputs: Ports) -> int:
    """Return the fd of a segment for one frame of a stage.

    Raises:
        ResourceError: The kernel has not that much memory.
    """
    *_, (_, layout, at) = _places(inputs, outputs)
    return create_segment(f"frame kept aside of {stage}", at + layout.slot_bytes)


def _places(inputs: Ports, outputs: Ports) -> Iterator[tuple[str, SlotLayout, int]]:
    """Yield side and port, layout and offset of each slot; all begin on a page."""
    at = 0
    for side, ports in (("in", inputs), ("out", outputs)):
        for name in sorted(ports):
            layout = SlotLayout.of(ports[name])
            yield f"{side}/{name}", layout, at
            at += layout.slot_bytes


def _samples(kept: Mapping[str, tuple[mmap.mmap, SlotLayout]]) -> dict[str, Sample]:
    samples = {}
    for port, (memory, layout) in kept.items():
        samples[port] = Sample(memory, layout, 0, address_of_map(memory))
        samples[port].refresh()
    return samples
