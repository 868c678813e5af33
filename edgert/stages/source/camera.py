"""The worker's half of a live source: connect, decode, keep the newest picture, connect again.

A thread of its own does all of that, so that decoding goes on while the pipeline is busy, and the
worker's loop while the camera is silent. Pictures stay where the decoder made them; the one copy
is the one into the slot.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from av.video.frame import VideoFrame

from edgert.errors import SourceError, UserError
from edgert.stages.base import Outputs, StageContext
from edgert.stages.live import CONNECTING, OFFLINE, ONLINE, STALLED, Condition, Unseen
from edgert.stages.source.address import Address
from edgert.stages.source.camera_log import CameraLog
from edgert.stages.source.connection import Connection, ConnectionLostError, Deadlines
from edgert.stages.source.epochs import Epochs
from edgert.stages.source.painter import Painter
from edgert.stages.source.reconnect import Reconnect
from edgert.tensor import FrameHeader, PortSpec

STALLED_SHARE = 0.5  # of the deadline for reading
STEADY_S = 10.0  # one that was there for less comes and goes: it is tried less and less often
HANG_UP_WITHIN_S = 0.5  # a read in progress ends with the process


@dataclass(frozen=True, slots=True)
class Shot:
    """A decoded picture on its way to the gate."""

    frame: VideoFrame
    pts_ns: int
    captured_ns: int
    epoch: int


@dataclass(frozen=True, slots=True)
class CameraPlan:
    """What a camera is opened with, again and again.

    Attributes:
        address: Returns where it is; called before each try, so that credentials may change.
        deadlines: How long what may take.
        reconnect: When it is tried again.
        decoder: The decoder that is preferred.
        threads: Threads of a software decoder.
    """

    address: Callable[[], Address]
    deadlines: Deadlines
    reconnect: Reconnect
    decoder: str
    threads: int


class Camera:
    """A ``Feed`` (``stages/live.py``) of something that FFmpeg opens."""

    def __init__(self, plan: CameraPlan, port: PortSpec, context: StageContext) -> None:
        self._plan = plan
        self._context = context
        self._painter = Painter(port, context)
        self._epochs = Epochs()
        self._stalled_after_s = STALLED_SHARE * plan.deadlines.read_s
        self._lock = threading.Condition()
        # Guarded by the lock:
        self._newest: Shot | None = None
        self._unseen = Unseen()
        self._condition = Condition()
        self._last_s = 0.0
        self._end: BaseException | None = None
        self._log = CameraLog(context)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.ready_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    @property
    def condition(self) -> Condition:
        """How the camera is right now."""
        if self._is_quiet():
            with self._lock:
                if self._is_quiet():
                    reason = f"sent no frame for {self._stalled_after_s:g} s"
                    self._condition = replace(self._condition, state=STALLED, reason=reason)
        return self._condition

    def _is_quiet(self) -> bool:
        quiet_s = time.monotonic() - self._last_s
        return self._condition.state == ONLINE and quiet_s > self._stalled_after_s

    def start(self) -> None:
        """Begin to connect."""
        if self._thread is None:
            name = f"{self._context.name}.camera"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def wait_online(self) -> None:
        """Wait for the first frame."""
        self.start()
        deadlines = self._plan.deadlines
        within_s = 2 * deadlines.open_s + deadlines.first_frame_s
        with self._lock:
            self._lock.wait_for(lambda: self.is_ready() or self._condition.reason, within_s)
            if self._newest is None:
                reason = self._condition.reason or f"sent no frame within {within_s:g} s"
                mend = "see to it, or leave `limits.require` at `any`: then the run goes on without"
                raise SourceError(self._context.place, f"the camera {reason}", mend)

    def is_ready(self) -> bool:
        """Whether ``grab`` returns at once."""
        return self._newest is not None or self._end is not None

    def take_unseen(self) -> Unseen:
        """Return what is to be counted since the last call."""
        with self._lock:
            self._acknowledge()  # whoever asks has read the condition, and asks is_ready next
            unseen, self._unseen = self._unseen, Unseen()
        return unseen

    def grab(self) -> FrameHeader | None:
        """Take the newest frame; wait for it where there is none."""
        self._painter.let_go()
        self.start()
        with self._lock:
            self._lock.wait_for(self.is_ready)
            shot, self._newest = self._newest, None
        if shot is not None:
            return self._take(shot)
        end = self._end
        if not isinstance(end, ConnectionLostError):
            raise end or AssertionError("no frame, and no end")
        if end.is_end:
            return None
        fault = f"the camera {end}, and was tried often enough (`reconnect.attempts`)"
        raise SourceError(self._context.place, fault, "see to the camera, and start again")

    def _take(self, shot: Shot) -> FrameHeader:
        painter = self._painter
        scaled, damaged = painter.scaled, painter.damaged
        header = painter.take(shot.frame, shot.pts_ns, shot.captured_ns, shot.epoch)
        if painter.scaled > scaled or painter.damaged > damaged:
            self._count(scaled=painter.scaled - scaled, damaged=painter.damaged - damaged)
        return header

    def write(self, outputs: Outputs) -> None:
        """Write the frame last grabbed."""
        self._painter.write(outputs["image"])

    def close(self) -> None:
        """Hang up, and say what was out of the ordinary."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(HANG_UP_WITHIN_S)
        self._painter.let_go()
        self._painter.tell()

    def _count(self, **frames: int) -> None:
        with self._lock:
            known = {name: getattr(self._unseen, name) for name in frames}
            counts = {name: known[name] + more for name, more in frames.items()}
            self._unseen = replace(self._unseen, **counts)

    def _acknowledge(self) -> None:
        try:
            os.eventfd_read(self.ready_fd)
        except BlockingIOError:
            return

    # From here on: the thread.

    def _run(self) -> None:
        try:
            self._stay_connected()
        except BaseException as error:  # noqa: BLE001  grab() raises it, where the loop hears of it
            self._give_up(error)

    def _stay_connected(self) -> None:
        failures = short = 0
        while not self._over.is_set():
            start_s = time.monotonic()
            lost = self._connect()
            failures = 1 if self._condition.state in (ONLINE, STALLED) else failures + 1
            short += 1
            if failures == 1 and time.monotonic() - start_s >= STEADY_S:
                short = 0
                self._log.steady()
            chance = random.random()  # noqa: S311
            delay_s = self._plan.reconnect.next_delay_s(failures, chance, short)
            self._note_lost(str(lost), is_over=delay_s is None)
            if delay_s is None:
                self._give_up(lost)
                return
            self._over.wait(delay_s)

    def _connect(self) -> ConnectionLostError:
        """Stay connected as long as it lasts; return why it did not."""
        plan = self._plan
        try:
            connection = Connection(
                plan.address(), plan.deadlines, plan.decoder, plan.threads, self._note_broken
            )
        except ConnectionLostError as error:
            return error
        except UserError as error:  # the file of its credentials
            return ConnectionLostError(f"has no credentials: {error}")
        try:
            self._watch(connection)
        except ConnectionLostError as error:
            return error
        finally:
            connection.close()
        return ConnectionLostError("is not wanted any more", is_end=True)

    def _watch(self, connection: Connection) -> None:
        self._epochs.restart()
        is_first = True
        for frame, pts_ns in connection.frames():
            if self._over.is_set():
                return
            captured_ns = time.monotonic_ns()
            epoch, time_ns = self._epochs.stamp(pts_ns, captured_ns)
            self._offer(Shot(frame, time_ns, captured_ns, epoch))
            if is_first or self._condition.state == STALLED:
                self._note_online(connection, frame, comes_back=is_first)
                is_first = False
            elif self._condition.epochs != self._epochs.count:
                self._change(epochs=self._epochs.count)

    def _offer(self, shot: Shot) -> None:
        with self._lock:
            self._last_s = time.monotonic()
            if self._newest is None:
                os.eventfd_write(self.ready_fd, 1)
            else:
                self._count(dropped=1)
            self._newest = shot
            self._lock.notify_all()

    def _note_broken(self, why: str) -> None:
        self._count(lost=1)
        self._log.broken(why)

    def _note_online(self, connection: Connection, frame: VideoFrame, *, comes_back: bool) -> None:
        known = self._condition
        media = connection.describe(frame)
        self._log.decoder(connection.decoder, self._plan.decoder)
        self._log.online(media)
        self._change(
            state=ONLINE,
            reason=known.reason if known.media else "",
            media=media,
            reconnects=known.reconnects + (comes_back and bool(known.media)),
            epochs=self._epochs.count,
        )

    def _note_lost(self, reason: str, *, is_over: bool) -> None:
        if not self._over.is_set():
            self._log.lost(reason, is_over=is_over)
        was_seen = bool(self._condition.media)
        self._change(state=OFFLINE if was_seen or is_over else CONNECTING, reason=reason)

    def _give_up(self, why: BaseException) -> None:
        with self._lock:
            self._end = why
            os.eventfd_write(self.ready_fd, 1)
            self._lock.notify_all()

    def _change(self, **changes: Any) -> None:
        with self._lock:
            self._condition = replace(self._condition, **changes)
            os.eventfd_write(self.ready_fd, 1)
            self._lock.notify_all()
