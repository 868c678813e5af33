"""The heir of a stage on the same frames as the one that runs, until it is known to be as good.

    rest -> Lend -> Lent -> TryFrame -> Tried -> Resume, Compared -> rest ...    for each frame

Each of the two infers while the other does not, so that neither waits for the other's work: p95 is
compared with p95. In between the stage goes on as it is used to, most of the time.
"""

from __future__ import annotations

import math
import os
import time

import msgspec

from edgert.control.messages import (
    Compared,
    FramePlace,
    Lend,
    Lent,
    Resume,
    ToSupervisor,
    Tried,
    TryFrame,
)
from edgert.errors import EdgertError, ModelError, RunError
from edgert.plan.structs import StagePlan, TrialOrder
from edgert.runtime.crew import Member
from edgert.runtime.team import Team
from edgert.runtime.trials.specimen import create_specimen
from edgert.stages.swap_options import SwapOptions

TRYING, PASSED, KEPT_BACK = "trying", "passed", "kept back"
# Of the time between two frames that are lent, so much is the pipeline's alone.
_REST = 4.0
# How long the one that runs waits for the heir, in times that it took itself.
_PATIENCE = 4.0
_LONGER = 10  # times that it took itself: then the heir hangs, though hang_s is less
_GOES_ON = "The one that runs goes on"
_ANOTHER = f"{_GOES_ON}; give a model that keeps to the bounds, or other bounds"


class SwapStatus(msgspec.Struct, frozen=True):
    """How far a trial has come, or what came of it.

    Attributes:
        state: ``trying``, ``passed`` or ``kept back``.
        model: What was tried.
        frames: Frames that both have inferred.
        of: Frames that they are to infer.
        p95_ms: Of the one that runs (``before``) and the one that is tried (``after``).
        p95_ratio: The second in times of the first; None before the first frame.
        agreement: Share of what both find that they find alike; None where neither finds anything.
        compared: ``boxes`` or ``outputs``.
        said: Why it was kept back, or the figures in words; empty before the end.
    """

    state: str
    model: str
    frames: int
    of: int
    p95_ms: dict[str, float | None]
    p95_ratio: float | None
    agreement: float | None
    compared: str
    said: str


class Trial:
    """One stage of an heir beside the one that runs.

    Args:
        team: The workers.
        member: The worker that runs.
        heir: The one that wants its place.
        order: What is tried.
        stage: As the heir runs it.
        bounds: What it has to keep to.
    """

    def __init__(  # noqa: PLR0913  two workers, and what is asked of them
        self,
        team: Team,
        member: Member,
        heir: Member,
        order: TrialOrder,
        stage: StagePlan,
        bounds: SwapOptions,
    ) -> None:
        self.state = TRYING
        self.said = ""
        self._team, self._member, self._heir = team, member, heir
        self._stage, self._bounds = stage, bounds
        self._compared = "boxes" if order.readers else "outputs"
        self._before_ns: list[int] = []
        self._after_ns: list[int] = []
        self._shared = self._both = 0.0
        self._fd = create_specimen(stage.name, stage.input_ports, stage.output_ports)
        inode = os.fstat(self._fd).st_ino
        self._frame = FramePlace(f"/proc/{os.getpid()}/fd/{self._fd}", inode)
        now_s = time.monotonic()
        self._until_s = now_s + bounds.timeout_s
        self._next_s = now_s
        self._waits_for: type[ToSupervisor] | None = None  # None: at rest
        self._answer_by_s = math.inf
        self._limit_s = 0.0
        self._lent_ns = 0
        self._fault = ""

    @property
    def place(self) -> str:
        """With which its errors begin."""
        return f"stage '{self._stage.name}', swap"

    @property
    def progress(self) -> str:
        """How far it has come, in words."""
        frames = f"{len(self._after_ns)} of {self._bounds.frames} frames"
        return f"{self.place}: model {self.model} has been tried on {frames}"

    @property
    def model(self) -> str:
        """The model that is tried, as written."""
        return repr(self._stage.settings["model"])

    def hear(self, sender: Member, message: ToSupervisor) -> None:
        """Go on with what one of the two says in its turn; anything else is passed over."""
        if self.state != TRYING or type(message) is not self._waits_for:
            return
        if isinstance(message, Lent) and self._is_from(sender, self._member, message.stage):
            self._on_lent(message)
        elif isinstance(message, Tried) and self._is_from(sender, self._heir, message.stage):
            self._resume()
            self._before_ns.append(self._lent_ns)
            self._after_ns.append(message.took_ns)
            self._waits_for = Compared
        elif isinstance(message, Compared) and self._is_from(sender, self._heir, message.stage):
            self._shared += message.shared
            self._both += message.both
            self._waits_for = None
            self._answer_by_s = math.inf
            self._next_s = time.monotonic() + self._rest_s()

    def _is_from(self, sender: Member, wanted: Member, stage: str) -> bool:
        return sender is wanted and stage == self._stage.name

    def _on_lent(self, message: Lent) -> None:
        self._lent_ns, self._fault = message.took_ns, message.fault
        self._limit_s = max(self._member.plan.restart.hang_s, _LONGER * message.took_ns / 1e9)
        self._answer_by_s = time.monotonic() + self._limit_s
        self._waits_for = Tried
        if not message.fault:
            self._team.tell(self._heir, TryFrame(self._stage.name, self._frame))

    def has_ended(self) -> bool:
        """Go on; whether the heir has shown what it had to.

        Raises:
            ModelError: It does not keep to its bounds.
            RunError: It hangs, or there were too few frames.
        """
        now_s = time.monotonic()
        if self._fault:
            fault = f"{self._who()}: no frame can be lent to it ({self._fault})"
            raise self.keep_back(RunError(self.place, fault, _GOES_ON))
        if self._waits_for is None and len(self._after_ns) >= self._bounds.frames:
            self._judge()
            return True
        if now_s >= self._answer_by_s:
            fault = f"{self._who()}: it has been at one frame for {self._limit_s:.3g} s"
            raise self.keep_back(RunError(self.place, fault, _GOES_ON))
        if now_s >= self._until_s:
            raise self.keep_back(self._too_late())
        if self._waits_for is None and now_s >= self._next_s:
            self._waits_for = Lent
            lend = Lend(self._member.plan.name, self._stage.name, self._frame, self._patience())
            self._team.tell(self._member, lend)
        return False

    def failed(self, error: EdgertError) -> EdgertError:
        """Return the error of an heir that is gone, told as what came of the trial."""
        first = error.faults[0]
        fault = f"{self._who()} after {len(self._after_ns)} frames: {first.place}: {first.fault}"
        mend = f"{first.mend}. {_GOES_ON}" if first.mend else _GOES_ON
        return self.keep_back(type(error)(self.place, fault, mend))

    def keep_back(self, error: EdgertError) -> EdgertError:
        """Note why the heir does not take over."""
        self.state, self.said = KEPT_BACK, error.faults[0].fault
        return error

    def close(self) -> None:
        """Let the one that runs go on as it is used to, and give the memory back."""
        self._resume()
        os.close(self._fd)

    def status(self) -> SwapStatus:
        """Return how far it has come."""
        before_ms, after_ms = _p95_ms(self._before_ns), _p95_ms(self._after_ns)
        ratio, agreement = self._ratio(), self._agreement()
        return SwapStatus(
            state=self.state,
            model=self._stage.settings["model"],
            frames=len(self._after_ns),
            of=self._bounds.frames,
            p95_ms={"before": before_ms, "after": after_ms},
            p95_ratio=None if ratio is None else round(ratio, 3),
            agreement=None if agreement is None else round(agreement, 4),
            compared=self._compared,
            said=self.said,
        )

    def _resume(self) -> None:
        self._team.tell(self._member, Resume(self._stage.name))

    def _who(self) -> str:
        return f"model {self.model} is kept back"

    def _judge(self) -> None:
        bounds, ratio, agreement = self._bounds, self._ratio(), self._agreement()
        figures = self._figures()
        faults = []
        if bounds.max_p95_ratio is not None and (ratio or 0.0) > bounds.max_p95_ratio:
            faults.append(f"at most {bounds.max_p95_ratio:g} times is allowed (max_p95_ratio)")
        if bounds.min_agreement is not None and agreement is None:
            faults.append("so min_agreement cannot be told")
        elif bounds.min_agreement is not None and (agreement or 0.0) < bounds.min_agreement:
            faults.append(f"at least {bounds.min_agreement:g} is wanted (min_agreement)")
        if faults:
            fault = f"{self._who()}: {figures}; {'; '.join(faults)}"
            raise self.keep_back(ModelError(self.place, fault, _ANOTHER))
        self.state, self.said = PASSED, f"model {self.model} has passed: {figures}"

    def _figures(self) -> str:
        """Return what was measured, in words."""
        before_ms, after_ms = _p95_ms(self._before_ns), _p95_ms(self._after_ns)
        agreement = self._agreement()
        alike = f"their agreement is {agreement or 0:.3f} ({self._compared})"
        if agreement is None:
            alike = f"neither of them gives anything to compare ({self._compared})"
        return (
            f"on {len(self._after_ns)} frames its p95 is {after_ms} ms, {self._ratio():.2f} times "
            f"the {before_ms} ms of the one that runs, and {alike}"
        )

    def _too_late(self) -> RunError:
        done = len(self._after_ns)
        fault = (
            f"{self._who()}: both have inferred {done} of {self._bounds.frames} frames within "
            f"{self._bounds.timeout_s:g} s (timeout_s)"
        )
        mend = f"{_GOES_ON}; look whether frames come, and try again"
        return RunError(self.place, fault, mend)

    def _rest_s(self) -> float:
        """Return how long to leave the pipeline alone, so that all frames are had in time."""
        spent_s = (self._lent_ns + self._after_ns[-1]) / 1e9
        left = max(1, self._bounds.frames - len(self._after_ns))
        left_s = self._until_s - time.monotonic()
        return max(0.0, min(_REST * spent_s, 0.8 * left_s / left - spent_s))

    def _patience(self) -> float:
        return max(_PATIENCE, 2 * (self._bounds.max_p95_ratio or 0.0))

    def _ratio(self) -> float | None:
        before_ms, after_ms = _p95_ms(self._before_ns), _p95_ms(self._after_ns)
        return after_ms / max(before_ms, 1e-6) if before_ms is not None and after_ms else None

    def _agreement(self) -> float | None:
        return self._shared / self._both if self._both else None


def _p95_ms(times_ns: list[int]) -> float | None:
    """Return the time that 19 of 20 do not exceed."""
    if not times_ns:
        return None
    return round(sorted(times_ns)[math.ceil(0.95 * len(times_ns)) - 1] / 1e6, 3)
