"""An heir that has to show what it does: it infers frames lent by the one whose place it wants."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from edgert.control.messages import Compared, FramePlace, Tried, TryFrame
from edgert.plan.structs import TrialOrder, WorkerOrder
from edgert.runtime.trials.agreement import Agreement, BoxAgreement, OutputAgreement
from edgert.runtime.trials.specimen import Specimen
from edgert.stages.base import AsyncStage, Stage
from edgert.stages.harness import PrivateSlot
from edgert.transport.slot import Sample


class Candidate:
    """The stages of an heir that are tried.

    Args:
        stages: Its stages, open.
        order: What its worker was told.
        tell: Tells the supervisor.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        order: WorkerOrder,
        tell: Callable[[Tried | Compared], None],
    ) -> None:
        by_name = {stage.context.name: stage for stage in stages}
        self._worker = order.worker.name
        self._tell = tell
        self._tried = {
            each.stage: _Tried(by_name[each.stage], each, order) for each in order.trials
        }
        gc.disable()  # as in the loop of the one that it is compared with

    def try_frame(self, message: TryFrame) -> None:
        """Infer the frame that was lent, say how long it took, then how alike it is.

        Raises:
            Exception: Whatever the stage raised: a frame that the other one made, it cannot make.
        """
        tried = self._tried[message.stage]
        specimen = tried.specimen(message.place)
        made, took_ns = tried.infer(specimen.inputs())
        self._tell(Tried(self._worker, message.stage, took_ns))
        alike = tried.agreement.compare(specimen.outputs(), made)
        self._tell(Compared(self._worker, message.stage, alike.shared, alike.both))

    def close(self) -> None:
        """Give back what the stages themselves do not need."""
        for tried in self._tried.values():
            tried.agreement.close()
        self._tried.clear()
        gc.enable()


class _Tried:
    """One stage that is tried, with room for what it gives."""

    def __init__(self, stage: Stage, trial: TrialOrder, order: WorkerOrder) -> None:
        if not isinstance(stage, AsyncStage):
            raise TypeError(f"{stage.context.place} makes one frame at a time: it cannot be tried")
        self._stage = stage
        self._outputs = {name: PrivateSlot(port) for name, port in stage.context.outputs.items()}
        self._specimen: Specimen | None = None
        self.agreement: Agreement
        if trial.readers:
            self.agreement = BoxAgreement(trial.readers, order)
        else:
            self.agreement = OutputAgreement(stage.context.outputs)

    def specimen(self, place: FramePlace) -> Specimen:
        """Return the frame that is lent: always the same memory."""
        if self._specimen is None:
            context = self._stage.context
            self._specimen = Specimen(place, context.inputs, context.outputs)
        return self._specimen

    def infer(self, samples: Mapping[str, Sample]) -> tuple[dict[str, Sample], int]:
        """Infer one frame; return what it gives, and the nanoseconds from begin to end."""
        loans = {name: slot.loan for name, slot in self._outputs.items()}
        for loan in loans.values():
            loan.inherit(next(iter(samples.values())))
        has_ended = threading.Event()
        errors: list[BaseException | None] = []
        ends_ns: list[int] = []

        def done(error: BaseException | None) -> None:
            ends_ns.append(time.monotonic_ns())
            errors.append(error)
            has_ended.set()

        begun_ns = time.monotonic_ns()
        self._stage.start(samples, loans, done)
        has_ended.wait()
        if errors[0] is not None:
            raise errors[0]
        return {name: slot.received() for name, slot in self._outputs.items()}, ends_ns[
            0
        ] - begun_ns
