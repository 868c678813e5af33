"""The contract of frames that come of their own accord: a camera's, or files that drop in.

Nobody waits in ``grab`` for them: the loop of a worker polls ``ready_fd`` and goes on with other
things, above all with stopping when it is told to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

CONNECTING, ONLINE, STALLED, OFFLINE = "connecting", "online", "stalled", "offline"
STATES = ("", CONNECTING, ONLINE, STALLED, OFFLINE)  # in the ledger by number; 0: not a live source


@dataclass(frozen=True, slots=True)
class Condition:
    """How a live source is.

    Attributes:
        state: ``connecting``: it was never there so far, and is tried again and again; ``online``:
            frames come; ``stalled``: they have stopped, and the deadline has not passed yet;
            ``offline``: it is gone and tried again and again, or was given up.
        reason: Why it is not online, or last was not; without credentials.
        media: What comes and how it is decoded; empty until it came for the first time.
        reconnects: How often it came back.
        epochs: How often its time has begun: once, and again with each return or restart.
    """

    state: str = CONNECTING
    reason: str = ""
    media: str = ""
    reconnects: int = 0
    epochs: int = 0


@dataclass(frozen=True, slots=True)
class Unseen:
    """Frames to be counted beside those that ``grab`` gives: the first two never reached the gate.

    Attributes:
        dropped: A newer one was there before they could be sent.
        lost: They could not be decoded.
        scaled: They were sent, scaled down to their slot.
        damaged: They were sent, decoded as far as that goes.
    """

    dropped: int = 0
    lost: int = 0
    scaled: int = 0
    damaged: int = 0


class Feed(Protocol):
    """What a source of such frames has beside ``grab`` and ``write``."""

    @property
    def ready_fd(self) -> int:
        """Readable when ``is_ready`` may have changed."""
        ...

    @property
    def condition(self) -> Condition:
        """How the source is right now; the same object as long as nothing has changed."""
        ...

    def start(self) -> None:
        """Begin; called once the worker's loop runs, or before ``wait_online``."""
        ...

    def wait_online(self) -> None:
        """Wait until the first frame is there.

        Raises:
            SourceError: It did not come within the deadlines.
        """
        ...

    def is_ready(self) -> bool:
        """Whether ``grab`` has a frame, a fault or the end to return at once."""
        ...

    def take_unseen(self) -> Unseen:
        """Return what was not counted yet."""
        ...
