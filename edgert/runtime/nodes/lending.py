"""One frame of a stage that is inferred alone and lent to the heir of its worker.

    wanted -> nothing is under way -> alone -> it ends, is copied and told -> held -> resumed

While the heir infers it, the stage begins no other: each is timed alone, and a device has no more
to do at once than before. That is over at the latest after some times what the frame took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from edgert.control.messages import Lend, Lent
from edgert.runtime.trials.specimen import Specimen
from edgert.stages.base import StageContext
from edgert.transport.slot import Loan, Sample

_AT_LEAST_NS = 50_000_000  # for words to go to and fro, and for threads to wake up
_AT_MOST_NS = 1_000_000_000


class Ended(Protocol):
    """A frame that has ended."""

    @property
    def end_ns(self) -> int:
        """When."""
        ...

    @property
    def loans(self) -> Mapping[str, Loan]:
        """What it gives."""
        ...


class Lending:
    """One frame on its way to be lent.

    Args:
        message: What was asked for.
        context: Of the stage.
        tell: Tells the supervisor.

    Raises:
        OSError: There is no place for it, or not any more.

    Attributes:
        is_held: Whether other frames are held back for the heir.
        due_ns: When that is over by itself.
    """

    def __init__(self, message: Lend, context: StageContext, tell: Callable[[Lent], None]) -> None:
        self.is_held = False
        self.due_ns = 0
        self._message = message
        self._tell = tell
        self._specimen = Specimen(message.place, context.inputs, context.outputs)
        self._alone: Ended | None = None
        self._begun_ns = 0

    @property
    def is_over(self) -> bool:
        """Whether it was lent, and the heir has had its time."""
        return self.is_held and time.monotonic_ns() >= self.due_ns

    def holds_back(self, under_way: int) -> bool:
        """Whether no other frame may begin now."""
        return self.is_held or self._alone is not None or under_way > 0

    def begin(self, frame: Ended, samples: Mapping[str, Sample]) -> None:
        """Keep what goes into the frame that begins now."""
        self._specimen.keep_inputs(samples)
        self._alone = frame
        self._begun_ns = time.monotonic_ns()  # last: the copy is not the inference's

    def end(self, frame: Ended, *, is_good: bool) -> None:
        """Keep what came out and tell it; of a frame that was lost another is lent."""
        if frame is not self._alone:
            return
        self._alone = None
        if not is_good:
            return
        took_ns = frame.end_ns - self._begun_ns
        self._specimen.keep_outputs(frame.loans)
        patience_ns = round(took_ns * self._message.patience) + _AT_LEAST_NS
        self.is_held = True
        self.due_ns = time.monotonic_ns() + min(patience_ns, _AT_MOST_NS)
        self._tell(Lent(self._message.worker, self._message.stage, took_ns))
