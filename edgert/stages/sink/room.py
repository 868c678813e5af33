"""Room on the disk: below a floor a sink writes nothing, says so once, and goes on later."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import NoReturn

from edgert.errors import FrameLostError, StageError
from edgert.stages.base import StageContext
from edgert.wording import counted

MB = 1_000_000
_LOOK_EVERY_S = 0.2
_AGAIN_ABOVE = 1.1  # of the floor: at the floor itself a sink would stop and go on all the time
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


class DiskRoom:
    """Watches the room of one sink.

    Args:
        folder: Where the sink writes.
        min_free_mb: What must stay free for others, in 10**6 bytes; 0 watches nothing.
        context: The sink's, for its place and log.

    Attributes:
        unwritten: Frames that were not written for want of room.
    """

    def __init__(self, folder: Path, min_free_mb: float, context: StageContext) -> None:
        self.unwritten = 0
        self._folder, self._floor, self._context = folder, min_free_mb * MB, context
        self._is_short = False
        self._look_at_s = 0.0
        self._missed = 0

    def is_there(self) -> bool:
        """Whether there is room, as it was seen a moment ago at most.

        Raises:
            StageError: The folder is gone, or its disk.
        """
        now_s = time.monotonic()
        if self._floor and now_s >= self._look_at_s:
            self._look_at_s = now_s + _LOOK_EVERY_S
            self._look()
        return not self._is_short

    def is_lack(self, error: BaseException | None) -> bool:
        """Whether an error says that the disk is full, and that is to be waited for."""
        if not self._floor or not isinstance(error, OSError) or error.errno not in _NO_ROOM:
            return False
        self._look_at_s = time.monotonic() + _LOOK_EVERY_S
        self._set_short(short=True)
        return True

    def lose(self) -> NoReturn:
        """Give up one frame, which is counted and not told of singly.

        Raises:
            FrameLostError: Always.
        """
        self.unwritten += 1
        self._missed += 1
        raise FrameLostError("there is no room on the disk", is_said=True)

    def tell_end(self) -> None:
        """Say at the end how many frames were not written."""
        if self.unwritten:
            self._context.log.error(
                "%s: %s not written: '%s' had too little room",
                self._context.place, counted(self.unwritten, "frame"), self._folder,
            )  # fmt: skip

    def _look(self) -> None:
        try:
            found = os.statvfs(self._folder)
        except OSError as error:
            place = f"{self._context.place}, folder '{self._folder}'"
            fault = f"its free space cannot be read: {error.strerror}"
            raise StageError(place, fault, "see to the disk") from error
        needed = self._floor * (_AGAIN_ABOVE if self._is_short else 1)
        self._set_short(short=found.f_bavail * found.f_frsize < needed)

    def _set_short(self, *, short: bool) -> None:
        if short == self._is_short:
            return
        self._is_short = short
        log, place = self._context.log, self._context.place
        if short:
            log.error(
                "%s: '%s' has less than %g MB free (min_free_mb): nothing is written until it has",
                place, self._folder, self._floor / MB,
            )  # fmt: skip
        else:
            missed, self._missed = self._missed, 0
            log.warning("%s: writes again; %s not written", place, counted(missed, "frame"))
