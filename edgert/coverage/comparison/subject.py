"""What is compared, and the two that are asked: what every part of a comparison needs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgert import isolate
from edgert.coverage import values
from edgert.coverage.adapter import Work
from edgert.coverage.comparison.asking import Asking
from edgert.coverage.protocol import Ask, Reply
from edgert.coverage.run import judge
from edgert.coverage.values import Value
from edgert.errors import ModelError

_SURGERY_WITHIN_S = 300.0


class Tolerance(msgspec.Struct, frozen=True):
    """How far a value may be off, where its element type allows for less.

    Attributes:
        rtol: Relative.
        atol: Absolute.
    """

    rtol: float
    atol: float


class Subject:
    """A model between two devices.

    Args:
        work: The model; its inputs are given with each question.
        reference: The device that is believed.
        candidate: The device under test.
        tolerance: How far a value may be off.
        folder: For files on the way.
    """

    def __init__(
        self,
        work: Work,
        reference: Asking,
        candidate: Asking,
        tolerance: Tolerance,
        folder: Path,
    ) -> None:
        self.work = work
        self.reference = reference
        self.candidate = candidate
        self.tolerance = tolerance
        self.folder = folder

    def expected(self, path: str, inputs: Path, target: Path) -> dict[str, Value]:
        """Return what the reference computes, and write it to ``target``.

        Raises:
            ModelError: It computes nothing: without a reference there is no comparison.
        """
        target.unlink(missing_ok=True)
        reply = self.reference.ask(Ask(work=self._work(path, inputs), keep=str(target)))
        if not target.exists():
            place = f"reference {self.reference.device}"
            raise ModelError(place, f"it does not compute {self.work.name}: {judge(reply)[2]}")
        return values.load(target)

    def given(self, path: str, inputs: Path, target: Path) -> tuple[Reply, dict[str, Value]]:
        """Return what comes of asking the candidate, and the outputs, if there are any."""
        target.unlink(missing_ok=True)
        reply = self.candidate.ask(Ask(work=self._work(path, inputs), keep=str(target)))
        return reply, values.load(target) if target.exists() else {}

    def _work(self, path: str, inputs: Path) -> Work:
        return msgspec.structs.replace(self.work, path=path, inputs=str(inputs), runs=0)

    def operate(self, function: str, **arguments: object) -> object:
        """Call a function of ``surgery`` in a child."""
        return isolate.call(
            f"edgert.coverage.comparison.surgery:{function}",
            arguments,
            _SURGERY_WITHIN_S,
            f"model '{self.work.name}'",
            ModelError,
        )
