"""The errors of edgert: a class says who must act.

    EdgertError                    printed without a traceback
    ├── UserError                  the user can mend the input           exit 2
    │   ├── PipelineError          faults of a pipeline file, all of them
    │   ├── ModelError             a model is missing, corrupt or does not fit
    │   ├── MediaError             a video or an image cannot be read
    │   ├── DeviceError            a device refused a model
    │   ├── ResourceError          too little memory, an impossible core
    │   └── BusyError              a pipeline of that name is running
    └── RunError                   the run failed                        exit 1
        ├── StageError             a stage raised, or broke a rule of its contract
        ├── DeviceLostError        a device that had taken a model fails at it now
        ├── SourceError            a live source is gone and is not tried again
        └── WorkerDiedError        a worker process ended that should not have

    FrameLostError, FrameFiltered  not faults of a run: what a stage says of one frame

Anything else that reaches the command line is a bug of ours: exit 70, with its traceback.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgert.redact import for_terminals

EXIT_DONE = 0
EXIT_RUN_FAILED = 1
EXIT_USER = 2
EXIT_BUG = 70


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: where it is, what it is, how it is mended.

    Attributes:
        place: What is at fault, for example ``stage 'infer', input 'tensor'``.
        fault: What is wrong, without a full stop.
        mend: What to do about it, without a full stop; empty where nothing can be said.
        file: The file it stands in; empty where there is none.
        line: Line in that file, from 1; 0 where there is none.
        column: Column in that line, from 1.
    """

    place: str
    fault: str
    mend: str = ""
    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Return ``file:line:column: place: fault. mend.``, leaving out what is not known.

        Credentials in URLs are left out, too.
        """
        where = self.file
        if self.file and self.line:
            where = f"{self.file}:{self.line}:{self.column}"
        head = ": ".join(part for part in (where, self.place) if part)
        said = f"{head}: {self.fault.rstrip('.')}."
        if not self.mend:
            return for_terminals(said)
        end = "" if self.mend.endswith(("?", "!")) else "."
        return for_terminals(f"{said} {self.mend[0].upper()}{self.mend[1:].rstrip('.')}{end}")


@dataclass(frozen=True, slots=True)
class KeyFault(Fault):
    """A fault of one key of a stage's settings: who knows the file finds line and column by it.

    Attributes:
        path: The keys, and places in lists, that lead to it, from the stage's own.
        is_unknown: The key itself is at fault, not its value.
    """

    path: tuple[str | int, ...] = ()
    is_unknown: bool = False


class EdgertError(Exception):
    """An error that is told to the user without a traceback."""

    exit_code = EXIT_RUN_FAILED

    def __init__(self, place: str, fault: str, mend: str = "") -> None:
        self.faults: tuple[Fault, ...] = (Fault(place, fault, mend),)
        super().__init__(place, fault, mend)

    def __str__(self) -> str:
        """Return every fault, one a line."""
        return "\n".join(str(fault) for fault in self.faults)


class UserError(EdgertError):
    """The user can mend the input."""

    exit_code = EXIT_USER


class PipelineError(UserError):
    """A pipeline file, or a device profile, has faults; all of them are told."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults[0].place, faults[0].fault, faults[0].mend)
        self.faults = tuple(faults)


class ModelError(UserError):
    """A model is missing, corrupt, or does not fit its stage."""


class MediaError(UserError):
    """A video or an image cannot be read."""


class DeviceError(UserError):
    """No device of those asked for took the model."""


class ResourceError(UserError):
    """The machine has too little of something, or not the thing asked for."""


class BusyError(UserError):
    """A pipeline of the same name is running."""


class RunError(EdgertError):
    """The run failed."""


class StageError(RunError):
    """A stage raised, or broke a rule of its contract."""


class DeviceLostError(RunError):
    """A device that had taken a model fails at it now: frames in flight are tried elsewhere."""


class SourceError(RunError):
    """A live source cannot be had, and was not to be tried (again)."""


class WorkerDiedError(RunError):
    """A worker process ended that should not have."""


class FrameLostError(Exception):
    """Raised by a stage: this one frame cannot be had; it is counted lost with the reason.

    Args:
        reason: Why.
        is_said: The stage has said so itself, once for many frames: this one is counted alone.
    """

    def __init__(self, reason: str = "", *, is_said: bool = False) -> None:
        super().__init__(reason)
        self.is_said = is_said


class FrameFiltered(Exception):  # noqa: N818  not an error: a decision
    """Raised by a stage: nobody downstream needs this frame; it counts as processed."""
