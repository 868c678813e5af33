"""The worker's half of ``source.video``: demux, decode, stamp, write."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

from av.error import FFmpegError
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from edgert.errors import FrameLostError, MediaError
from edgert.stages.base import Outputs, StageContext
from edgert.stages.source.container import missing_bytes, open_video, said
from edgert.stages.source.landing import Landing, find_landing, find_play
from edgert.stages.source.painter import Painter
from edgert.stages.source.timeline import Timeline
from edgert.tensor import FrameHeader, PortSpec
from edgert.wording import counted

# A demuxer that fails this often in a row will not get over it.
MAX_BROKEN_READS = 10
NS = 1_000_000_000

VideoPacket: TypeAlias = "Packet[VideoStream]"


class VideoReader:
    """The frames of one play of a file, in order, each of them given or told lost.

    Attributes:
        ends_early: The fault, where the file has ended before it says it does; empty otherwise.
    """

    def __init__(self, path: str, place: str, threads: int) -> None:
        self._path = path
        self._container, self._stream = open_video(path, place)
        self._codec = self._stream.codec_context
        self._stream.thread_type = "AUTO" if threads > 1 else "NONE"
        self._codec.thread_count = threads
        self._packets: Iterator[VideoPacket] = self._container.demux(self._stream)
        self._ready: deque[VideoFrame] = deque()
        self._read = self._given = self._lost = self._discarded = 0
        self._unseen = self._unfound = 0
        self._broken_reads = 0
        self._end = 0
        self._has_ended = False
        self.ends_early = ""

    @property
    def times(self) -> tuple[int, int, int]:
        """Start of the stream, numerator and denominator (in ns) of the unit of its times."""
        base = self._stream.time_base or Fraction(1, 1000)
        return self._stream.start_time or 0, base.numerator * NS, base.denominator

    @property
    def step_ns(self) -> int:
        """Nominal time between two frames."""
        rate = self._stream.average_rate or self._stream.guessed_rate
        return round(NS / rate) if rate else 0

    def read(self) -> VideoFrame | None:
        """Return the next frame, or None at the end.

        Raises:
            FrameLostError: A frame could not be decoded; the next call goes on after it.
        """
        while not self._ready:
            if self._has_ended:
                self._tell_unseen()
                return None
            self._advance()
        self._given += 1
        return self._ready.popleft()

    def land(self, number: int, place: str) -> bool:
        """Go on at a frame, before anything was read; False where decoding must lead there."""
        landing = find_landing(self._path, place, number)
        if landing is None:
            return False
        self._container.seek(landing.keyframe, stream=self._stream)
        self._packets = self._container.demux(self._stream)
        if not self._find_keyframe(landing.keyframe):
            self._container.seek(self._stream.start_time or 0, stream=self._stream)
            self._packets = self._container.demux(self._stream)
            self._read = self._end = 0
            return False
        self._read += landing.packets_before
        self._given = landing.frames_before
        self._end = max(self._end, landing.end)
        while not self._drop_before(landing) and not self._has_ended:
            with contextlib.suppress(FrameLostError):
                self._advance()
        self._given, self._lost = number, 0  # those lost on the way were told by the dead
        return True

    def _drop_before(self, landing: Landing) -> bool:
        """Let frames go that come before the one to land at; whether that is there."""
        while self._ready and (self._ready[0].pts or 0) < landing.target:
            self._given += (self._ready.popleft().pts or 0) >= landing.keyframe
        return bool(self._ready)

    def _find_keyframe(self, pts: int) -> bool:
        """Decode from a key frame on; seeking may have stopped at an earlier one."""
        for packet in self._packets:
            if packet.pts == pts:
                self._note(packet)
                self._ready.extend(self._decode(packet))
                return True
            if packet.pts is None or packet.pts > pts:
                return False
        return False

    def close(self) -> None:
        """Close the file."""
        self._ready.clear()
        self._container.close()

    def _advance(self) -> None:
        packet = self._next_packet()
        if packet is None:
            self._has_ended = True
            self._ready.extend(self._decode(None))
            self._settle()
        elif packet.size:  # an empty packet would be taken for the end by the decoder
            self._note(packet)
            self._ready.extend(self._decode(packet))

    def _next_packet(self) -> VideoPacket | None:
        try:
            packet = next(self._packets, None)
        except FFmpegError as error:
            self._broken_reads += 1
            if self._broken_reads >= MAX_BROKEN_READS:
                return None
            self._packets = self._container.demux(self._stream)
            raise FrameLostError(f"the file could not be read: {said(error)}") from error
        self._broken_reads = 0
        return packet

    def _note(self, packet: VideoPacket) -> None:
        self._read += 1
        self._discarded += packet.is_discard
        if packet.pts is not None:
            self._end = max(self._end, packet.pts + (packet.duration or 0))

    def _decode(self, packet: VideoPacket | None) -> list[VideoFrame]:
        try:
            return self._codec.decode(packet)
        except FFmpegError as error:
            if packet is None:
                return []
            self._lost += 1
            raise FrameLostError(f"could not be decoded: {said(error)}") from error

    def _settle(self) -> None:
        """Compare what was there with what the container declares."""
        stream = self._stream
        declared = stream.frames
        decoded = self._given + len(self._ready)
        missing = missing_bytes(self._path)
        if not declared:
            if missing:
                rest = counted(missing, "byte")
                self.ends_early = f"ends early: {counted(decoded, 'frame')}, then {rest} missing"
            return
        self._unseen = max(0, self._read - self._discarded - decoded - self._lost)
        ends_at = (stream.start_time or 0) + (stream.duration or 0)
        is_short = self._read < declared and self._end < ends_at
        if is_short and missing == 0:  # its length is right: they are spoilt, not cut off
            self._unfound = declared - self._read
        elif is_short or (self._read < declared and missing):
            self.ends_early = f"ends early: {decoded} of {declared} frames could be read"

    def _tell_unseen(self) -> None:
        if self._unseen:
            self._unseen -= 1
            raise FrameLostError("the decoder gave no picture for it")
        if self._unfound:
            self._unfound -= 1
            raise FrameLostError("the file is damaged where it should be")


class VideoDecoder:
    """Frames of a file played once or several times, ready to be written into slots.

    Attributes:
        timeline: Counts the time stamps that had to be made.
        painter: Counts the frames that had to be scaled, and those that are damaged.
    """

    def __init__(self, port: PortSpec, context: StageContext, plays: int, threads: int) -> None:
        self._context = context
        self._path: str = port.attributes["path"]
        self._threads = threads
        self._plays_left = plays - 1
        self.painter = Painter(port, context)
        self._reader = self._open()
        self.timeline = Timeline(self._reader.step_ns or round(NS / port.attributes["fps"]))
        self._start, self._numerator, self._denominator = self._reader.times

    def grab(self) -> FrameHeader | None:
        """Decode the next frame and describe it."""
        self.painter.let_go()
        frame = self._next_frame()
        if frame is None:
            return None
        now_ns = time.monotonic_ns()
        return self.painter.take(frame, self._stamp(frame), now_ns)

    def write(self, outputs: Outputs) -> None:
        """Write the frame last grabbed."""
        self.painter.write(outputs["image"])

    def land(self, number: int) -> int:
        """Go on at a frame, or near it, without decoding all before it.

        Returns:
            How many frames are left to let go.
        """
        place = self._context.place
        number -= self._skip_plays(number, place)
        return 0 if self._reader.land(number, place) else number

    def _skip_plays(self, number: int, place: str) -> int:
        """Let whole plays before a frame go, undecoded; how many frames those have."""
        play = find_play(self._path, place) if self._plays_left else None
        if play is None:
            return 0
        plays = min(number // play.frames, self._plays_left)
        self._plays_left -= plays
        last_ns, shown_ns = self._ns(play.last - self._start), self._ns(play.last_duration)
        self.timeline.skip(plays, last_ns, shown_ns)
        return plays * play.frames

    def close(self) -> None:
        """Close the file and say what was out of the ordinary."""
        self.painter.let_go()
        self._reader.close()
        self.painter.tell(
            (self.timeline.derived, "had no time stamp: derived"),
            (self.timeline.restamped, "had a time stamp that did not grow: stamped anew"),
        )

    def _open(self) -> VideoReader:
        place = f"{self._context.place}, file '{self._path}'"
        return VideoReader(self._path, place, self._threads)

    def _next_frame(self) -> VideoFrame | None:
        while (frame := self._reader.read()) is None:
            self._check_whole()
            if not self._plays_left:
                return None
            self._plays_left -= 1
            self._reader.close()
            self._reader = self._open()
            self.timeline.start_again()
        return frame

    def _check_whole(self) -> None:
        fault, self._reader.ends_early = self._reader.ends_early, ""
        if fault:
            self._plays_left = 0
            place = f"{self._context.place}, file '{self._path}'"
            raise MediaError(place, fault, "the results up to there stand; copy the file again")

    def _stamp(self, frame: VideoFrame) -> int:
        pts, duration = frame.pts, frame.duration
        return self.timeline.stamp(
            None if pts is None else self._ns(pts - self._start),
            self._ns(duration) if duration else 0,
        )

    def _ns(self, units: int) -> int:
        return units * self._numerator // self._denominator
