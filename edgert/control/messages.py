"""The messages between supervisor and workers: two unions, named by direction."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

_Whole = Annotated[int, msgspec.Meta(ge=0)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Start(msgspec.Struct, tag="start", frozen=True):
    """Everybody is ready: begin."""


class Stop(msgspec.Struct, tag="stop", frozen=True):
    """Sources end their streams; the end flows through the rings and everything drains."""


class Go(msgspec.Struct, tag="go", frozen=True):
    """The answer to ``Trying``: the time runs, try the device."""


class LogLevel(msgspec.Struct, tag="log-level", frozen=True):
    """Log from this level on."""

    level: str


class Leave(msgspec.Struct, tag="leave", frozen=True):
    """Finish what is under way, take no further frame, and exit: another process goes on."""


class Change(msgspec.Struct, tag="change", frozen=True):
    """Take other options over, between two frames.

    Attributes:
        stage: The stage.
        settings: All of its options as written.
    """

    stage: str
    settings: dict[str, Any]


class FramePlace(msgspec.Struct, frozen=True):
    """Where a frame is kept aside (``runtime/trials/specimen.py``).

    Attributes:
        file: The supervisor's fd, by way of /proc.
        inode: What it is to be: when the trial is over, the same fd may be something else.
    """

    file: str
    inode: int


class Lend(msgspec.Struct, tag="lend", frozen=True):
    """Infer the next frame of a stage alone, leave a copy of it, and hold the others back a moment.

    Attributes:
        worker: The worker that is told.
        stage: The stage.
        place: Where the copy goes.
        patience: How long to hold the others back, in times that the frame took.
    """

    worker: str
    stage: str
    place: FramePlace
    patience: float


class Resume(msgspec.Struct, tag="resume", frozen=True):
    """Hold the frames of a stage back no longer, and lend none.

    Attributes:
        stage: The stage.
    """

    stage: str


class TryFrame(msgspec.Struct, tag="try-frame", frozen=True):
    """To an heir that is warm: infer the frame that was lent.

    Attributes:
        stage: The stage.
        place: Where it is.
    """

    stage: str
    place: FramePlace


class Deal(msgspec.Struct, tag="deal", frozen=True):
    """A worker behind one of your stages has left frames undone: give them to another one."""


ToWorker = Start | Stop | Go | LogLevel | Leave | Change | Lend | Resume | TryFrame | Deal


class Ready(msgspec.Struct, tag="ready", frozen=True):
    """The worker has opened its stages and is attached to its rings.

    Attributes:
        worker: Its name.
        reports: Stage -> what it reported while opening (``StageContext.report``).
    """

    worker: str
    reports: dict[str, dict[str, Any]]


class Trying(msgspec.Struct, tag="trying", frozen=True):
    """The worker is about to open a device: if it hangs or dies now, that device is to blame.

    Attributes:
        worker: Its name.
        stage: The stage that opens it.
        device: ``openvino:NPU``.
        within_s: How long that may take.
        refused: Device -> why it refused, of those tried before.
    """

    worker: str
    stage: str
    device: str
    within_s: float
    refused: dict[str, str]


class Warm(msgspec.Struct, tag="warm", frozen=True):
    """The stages are open beside those of another process; ``Go`` lets this one take its place."""

    worker: str


class Left(msgspec.Struct, tag="left", frozen=True):
    """Told to leave, the worker is at rest between two frames and has closed its stages."""

    worker: str


class Lent(msgspec.Struct, tag="lent", frozen=True):
    """A frame was inferred alone, and what went in and came out is where it was asked for.

    Attributes:
        worker: Its name.
        stage: The stage.
        took_ns: How long the inference took.
        fault: Why no frame can be lent; empty where one was.
    """

    worker: str
    stage: str
    took_ns: _Whole
    fault: str = ""


class Tried(msgspec.Struct, tag="tried", frozen=True):
    """An heir has inferred the frame that was lent.

    Attributes:
        worker: Its name.
        stage: The stage.
        took_ns: How long the inference took.
    """

    worker: str
    stage: str
    took_ns: _Whole


class Compared(msgspec.Struct, tag="compared", frozen=True):
    """How alike what an heir made of the frame is to what came with it.

    Attributes:
        worker: Its name.
        stage: The stage.
        shared: What both have in common (``results/likeness.py``).
        both: What both have.
    """

    worker: str
    stage: str
    shared: _Amount
    both: _Amount


class SaidFault(msgspec.Struct, frozen=True):
    """A fault as it travels: place, fault, mend."""

    place: str
    fault: str
    mend: str


class InputFault(msgspec.Struct, tag="input-fault", frozen=True):
    """A source's input turned out not to be whole, or a camera is gone for good.

    Its stream ends; the others go on.

    Attributes:
        worker: Its name.
        faults: What to tell the user.
        exit_code: Of the error (``errors.py``).
    """

    worker: str
    faults: tuple[SaidFault, ...]
    exit_code: int


class Failed(msgspec.Struct, tag="failed", frozen=True):
    """The worker cannot go on and is about to exit.

    Attributes:
        worker: Its name.
        faults: What to tell the user.
        exit_code: Of the error (``errors.py``).
        trace: Traceback; empty where the user can mend it.
        error: Name of the error's class.
    """

    worker: str
    faults: tuple[SaidFault, ...]
    exit_code: int
    trace: str = ""
    error: str = ""


class Finished(msgspec.Struct, tag="finished", frozen=True):
    """Every stream has ended, the stages are closed, the files whole."""

    worker: str


class Log(msgspec.Struct, tag="log", frozen=True):
    """A log record of a worker.

    Attributes:
        worker: Its name.
        logger: Name of the logger.
        level: Level by number.
        message: The formatted message.
        fields: What ``extra=`` gave.
    """

    worker: str
    logger: str
    level: int
    message: str
    fields: dict[str, str | int] = {}


ToSupervisor = (
    Ready | Warm | Left | Trying | Lent | Tried | Compared | InputFault | Failed | Finished | Log
)
