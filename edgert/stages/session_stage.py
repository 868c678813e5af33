"""What a stage does with an opened session: frames in, frames out, alone or several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from edgert.backends.base import Fit, Session
from edgert.errors import DeviceError, DeviceLostError, FrameLostError, RunError
from edgert.stages.base import Batching, BatchStage, Done, Inputs, Outputs
from edgert.stages.batch_plan import planned_batches
from edgert.stages.batch_session import BatchSession
from edgert.stages.look import Look
from edgert.transport.address import Array
from edgert.transport.slot import Loan


class SessionStage(BatchStage):
    """Runs inferences from the samples' memory into the loans'.

    Attributes:
        port: Name of the input port, and of the output port.
    """

    port: ClassVar[tuple[str, str]] = ("tensor", "outputs")

    def adopt(self, session: Session) -> None:
        """Take over a session that is warmed up; what was copied for that does not count."""
        self._session = session
        self._warm_up_bytes = session.copied_bytes
        self._static = [
            (name, tuple(size or 0 for size in spec.shape))
            for name, spec in session.outputs.items()
            if spec.is_static
        ]
        self._open = [name for name, spec in session.outputs.items() if not spec.is_static]
        self._look = Look(
            [name for name, spec in session.outputs.items() if spec.dtype.startswith("f")]
        )

    @property
    def capacity(self) -> int:
        """Inferences that may be in flight."""
        return self._session.requests

    def start(self, inputs: Inputs, outputs: Outputs, done: Done) -> None:
        """Begin one inference from the sample's memory into the loan's."""
        self._book_copies()
        into = self._targets(outputs[self.port[1]])
        try:
            self._session.start(inputs[self.port[0]].tensors, into, self._checked([into], done))
        except DeviceError:
            self.require_fit(inputs)  # a frame of another shape is that frame's fault alone
            raise
        except RunError as error:
            raise self._lost(error) from error

    @property
    def batching(self) -> Batching | None:
        """How frames are collected, where the plan says so."""
        batch = planned_batches(self.context.outputs[self.port[1]].attributes)
        if batch is None:
            return None
        return Batching(batch.max_size, round(batch.delay_ms * 1e6), self._session.requests)

    def require_fit(self, inputs: Inputs) -> None:
        """Let a frame of another shape than planned be lost alone, not with a whole batch."""
        tensors = inputs[self.port[0]].tensors
        for name, spec in self._session.inputs.items():
            given = tensors.get(name)
            if given is None or not _fits(given.shape, spec.shape):
                arrives = "is missing" if given is None else f"has shape {list(given.shape)}"
                raise FrameLostError(f"{name!r} {arrives} in this frame, the model takes {spec}")

    def start_batch(self, frames: Sequence[tuple[Inputs, Outputs]], done: Done) -> int:
        """Begin one inference of several frames, gathered from the samples' memory."""
        session = self._session
        if not isinstance(session, BatchSession):
            raise TypeError(f"{self.context.place} was not opened for batches")
        self._book_copies()
        takes, gives = self.port
        pairs = [
            (inputs[takes].tensors, self._targets(outputs[gives])) for inputs, outputs in frames
        ]
        try:
            return session.start_batch(pairs, self._checked([into for _, into in pairs], done))
        except RunError as error:
            raise self._lost(error) from error

    def _checked(self, targets: Sequence[Mapping[str, Any]], done: Done) -> Done:
        """Return what is to be called at the end: with a failing device named as such."""

        def ended(error: BaseException | None) -> None:
            if error is None:
                fault = next(filter(None, map(self._look.fault, targets)), "")
                done(self._lost_by(fault) if fault else None)
            else:
                done(self._lost(error) if isinstance(error, RunError) else error)

        return ended

    def _lost(self, error: RunError) -> DeviceLostError:
        said = "; ".join(str(fault).rstrip(".") for fault in error.faults)
        device = self._session.device.actual
        return self._lost_by(said.removeprefix(f"{device}: "))

    def _lost_by(self, fault: str) -> DeviceLostError:
        return DeviceLostError(self.context.place, f"{self._session.device.actual}: {fault}")

    def close(self) -> None:
        """Wait for what is in flight and give the device back."""
        self._session.close()
        self._book_copies()

    def _targets(self, loan: Loan) -> dict[str, Array | Fit]:
        targets: dict[str, Array | Fit] = {
            name: loan.tensor(name, shape) for name, shape in self._static
        }
        for name in self._open:
            targets[name] = partial(_fit, loan, targets, name)
        return targets

    def _book_copies(self) -> None:
        self.context.copied_bytes = self._session.copied_bytes - self._warm_up_bytes


def _fit(loan: Loan, targets: dict[str, Array | Fit], name: str, shape: tuple[int, ...]) -> Array:
    """Return the room for a result, and leave it among the targets: it is looked at afterwards."""
    array = targets[name] = loan.tensor(name, shape)
    return array


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        size in (None, given) for given, size in zip(shape, wanted, strict=True)
    )
