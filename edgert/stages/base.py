"""The contract of a stage: ports, options, and what happens to a frame.

A stage is described without being opened (``plan`` imports no heavy library) and opened in the
process where it works: a worker, a test, or one process with its neighbour.

    Stage          process(inputs, outputs): one frame in, one frame out, or none (a sink)
    AsyncStage     start(inputs, outputs, done): several frames in flight, done when done
    BatchStage     start_batch(frames, done): the same, several frames at once
    Source         grab() and write(outputs): frames come from outside
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from edgert.errors import FrameLostError
from edgert.models.describe import ModelReader
from edgert.options import Options
from edgert.stages.context import ATTEMPT as ATTEMPT  # noqa: PLC0414  exported
from edgert.stages.context import OnAttempt as OnAttempt  # noqa: PLC0414  exported
from edgert.stages.context import StageContext as StageContext  # noqa: PLC0414  exported
from edgert.stages.context import nobody_counts as nobody_counts  # noqa: PLC0414  exported
from edgert.stages.live import Feed
from edgert.tensor import FrameHeader, PortSpec
from edgert.transport.slot import Loan, Sample

Inputs = Mapping[str, Sample]
Outputs = Mapping[str, Loan]
Ports = Mapping[str, PortSpec]


class StageOptions(Options):
    """The keys of a stage in the pipeline file that are its kind's own.

    Frozen; unknown keys are faults; every field has a description (for ``docs/pipeline-file.md``).
    """


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What a stage may ask while it is planned.

    Attributes:
        name: The stage's name in the file.
        place: ``stage 'NAME'``, with which errors begin.
        folder: Folder that relative paths of the file start from.
        models: Descriptions of models.
        stages: Validated options of every stage of the file, by name (``for: detector``).
        streams: Names of the streams (source stages) that reach this stage.
        in_flight: Frames of one stream that may be on their way.
        threads: How many threads the stage's libraries may use.
        frame_interval_ms: Shortest time between frames of a stream; 0 where one does not tell it.
    """

    name: str
    place: str
    folder: str
    models: ModelReader
    stages: Mapping[str, StageOptions]
    streams: tuple[str, ...] = ()
    in_flight: int = 4
    threads: int = 1
    frame_interval_ms: float = 0.0


class Stage:
    """One stage of a pipeline: frames in, frames out.

    Subclasses name their ports and options, and override what they need.

    Attributes:
        inputs: Kind of port that each input takes (``*``: any); a name ending in ``?`` is optional.
        outputs: Kind of port that each output is. A name that ends in ``?`` may go unread.
        options: The class of its options.
        uses_all_cores: Whether its libraries get a thread for each core of its worker, or one.
        is_stateless: Whether no frame depends on another, so that several workers may share them.
        live_options: Keys of its options that ``change`` can take over while it runs.
        swap_options: Keys that ``edgert ctl set`` may change by a worker opened beside the first.
    """

    inputs: ClassVar[Mapping[str, str]] = {}
    outputs: ClassVar[Mapping[str, str]] = {}
    options: ClassVar[type[StageOptions]] = StageOptions
    uses_all_cores: ClassVar[bool] = False
    is_stateless: ClassVar[bool] = False
    live_options: ClassVar[frozenset[str]] = frozenset()
    swap_options: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, options: Any, context: StageContext) -> None:
        self.settings = options
        self.context = context

    @classmethod
    def plan(cls, options: Any, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        """Say what each output port carries, as upper bounds.

        Args:
            options: The stage's validated options.
            inputs: What each connected input carries; several edges of one port are merged.
            context: What may be asked.

        Raises:
            UserError: The stage cannot work with what arrives, or a file is missing or wrong.
        """
        return {}

    @classmethod
    def frames_held(cls, options: Any, context: PlanContext) -> int:
        """Return how many frames the stage works on at once; the plan sizes rings by it."""
        return 1

    def open(self) -> None:
        """Get ready: import libraries, compile, allocate. Once, in the worker, after pinning."""

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Make one frame's outputs from its inputs.

        Every output has taken over the header of the first input; set another where it differs.
        Arrays of ``inputs`` end with this call: what is kept longer is a fault that is detected.

        Args:
            inputs: The frame on each input port.
            outputs: A loan for each connected output port.

        Raises:
            FrameLostError: This frame cannot be had; it is counted lost with the reason.
            FrameFiltered: Nobody downstream needs this frame.
        """
        raise NotImplementedError

    def change(self, options: Any) -> None:
        """Take options over between two frames; those of ``live_options`` alone differ."""
        self.settings = options

    def end_stream(self, stream: int) -> None:
        """Learn that a stream has ended; called once for each, after its last frame."""

    def close(self) -> None:
        """Give everything back; runs in every ending but a kill. Files are whole afterwards."""


Done = Callable[[BaseException | None], None]


class AsyncStage(Stage):
    """A stage with several frames in flight; outputs leave in the order of the inputs."""

    @property
    def capacity(self) -> int:
        """Frames that may be in flight; known once open."""
        return 1

    def start(self, inputs: Inputs, outputs: Outputs, done: Done) -> None:
        """Begin one frame; ``inputs`` and ``outputs`` stay valid until ``done`` is called.

        Arrays of theirs that are held when their memory is lent for another frame are a fault that
        is detected: a variable of a thread that waits for its next frame holds them, too.

        Args:
            inputs: The frame on each input port.
            outputs: A loan for each connected output port.
            done: Called once, from any thread, with the error that ended it or None.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Batching:
    """How frames are collected into batches.

    Attributes:
        max_size: Frames that one batch may have.
        max_delay_ns: How long the first of them may wait for others.
        requests: Batches that may be at work at once.
    """

    max_size: int
    max_delay_ns: int
    requests: int


class BatchStage(AsyncStage):
    """A stage that can make several frames at once, if its options say so."""

    @property
    def batching(self) -> Batching | None:
        """How frames are collected; None where each is started alone. Known once open."""
        raise NotImplementedError

    def require_fit(self, inputs: Inputs) -> None:
        """Look at one frame before it joins others.

        Raises:
            FrameLostError: It cannot be part of a batch; it alone is lost.
        """

    def start_batch(self, frames: Sequence[tuple[Inputs, Outputs]], done: Done) -> int:
        """Begin several frames, of any streams; what they have stays valid until ``done``.

        Args:
            frames: Inputs and outputs of each frame, as ``start`` gets them.
            done: Called once, from any thread, with the error that ended them all or None.

        Returns:
            How many frames there would have been room for in what was begun.
        """
        raise NotImplementedError


class Source(Stage):
    """A stage without inputs: each instance is one stream.

    Attributes:
        is_live: A live source drops at the flow gate (newest kept); any other waits there.
        feed: Where frames come of their own accord (``live.py``); None where ``grab`` fetches them.
    """

    is_live: bool = False
    feed: Feed | None = None

    def grab(self) -> FrameHeader | None:
        """Fetch the next frame without writing it anywhere; None at the end of the stream.

        The header needs no stream and no sequence: the runtime gives them. ``captured_ns`` is
        when the frame was there; ``epoch`` counts from 0.

        Raises:
            FrameLostError: One frame could not be had; it is counted as read and lost.
            UserError: The input turned out not to be whole; told at the end, exit code 2.
            SourceError: A camera is gone for good; its stream ends, exit code 1.
        """
        raise NotImplementedError

    def resume(self, sequence: int) -> None:
        """Go on at a frame after a restart, never if live; here by letting those before it go."""
        for _ in range(sequence):
            with contextlib.suppress(FrameLostError):
                self.grab()

    def write(self, outputs: Outputs) -> None:
        """Write the frame last grabbed into its loans: the one copy that a frame costs here."""
        raise NotImplementedError
