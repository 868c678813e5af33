"""Slots of private memory with the layout of a ring: what a stage alone reads and writes."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path

from edgert.transport.address import address_of_map
from edgert.transport.slot import Loan, Sample, SlotLayout


class Slots:
    """Some slots, each with a loan and a sample over it.

    Args:
        layout: How a slot is divided.
        count: How many.
    """

    def __init__(self, layout: SlotLayout, count: int) -> None:
        self._memory = mmap.mmap(-1, max(1, count) * layout.slot_bytes)
        self._slot_bytes = layout.slot_bytes
        address = address_of_map(self._memory)
        self.loans = [Loan(self._memory, layout, index, address) for index in range(count)]
        for loan in self.loans:
            loan.clear()
        self.samples = [Sample(self._memory, layout, index, address) for index in range(count)]

    def save(self, file: Path, order: Sequence[int]) -> None:
        """Write the bytes of the slots ``order`` to a file, in that order."""
        with file.open("wb") as into:
            for index in order:
                start = index * self._slot_bytes
                into.write(memoryview(self._memory)[start : start + self._slot_bytes])

    @classmethod
    def load(cls, layout: SlotLayout, file: Path) -> Slots:
        """Return the slots that were saved, each sample fresh."""
        data = file.read_bytes()
        slots = cls(layout, len(data) // layout.slot_bytes)
        slots._memory[: len(data)] = data
        for sample in slots.samples:
            sample.refresh()
        return slots
