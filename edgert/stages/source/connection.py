"""One connection to something live: opened, decoded and lost within deadlines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import av
from av.codec.hwaccel import HWAccel
from av.container import InputContainer
from av.error import FFmpegError
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from edgert.stages.source.address import V4L2, Address
from edgert.stages.source.container import NOT_VIDEO, said
from edgert.stages.source.hardware import Decoder, acceleration, decoder_of

NS = 1_000_000_000
# A camera may say anything of itself; from 19 on PyAV takes it as it is, without being asked to.
_LENIENT: dict[str, Any] = (
    {"metadata_errors": "replace"} if int(av.__version__.partition(".")[0]) < 19 else {}
)
NEARLY = 0.95  # of a deadline that FFmpeg kept for us, with an error of its own choice
# Devices and servers without a clock of their own: FFmpeg makes one up from a rate it guesses.
WITHOUT_TIMES = frozenset(("mpjpeg",))

OF_SERVERS: dict[type[Exception], str] = {
    av.error.HTTPUnauthorizedError: "refused the credentials",
    av.error.HTTPForbiddenError: "refused the credentials",
    av.error.HTTPNotFoundError: "knows no stream of that path (404)",
    av.error.InvalidDataError: "answered with something that is no video",
}
OF_V4L2: dict[type[Exception], str] = {
    FileNotFoundError: "is not there: no such device",
    PermissionError: "must not be read by this user: add it to the group 'video'",
}


class ConnectionLostError(Exception):
    """The connection is over; the message says why, without address and credentials.

    Attributes:
        is_end: The other side ended it in good order.
    """

    def __init__(self, reason: str, *, is_end: bool = False) -> None:
        super().__init__(reason)
        self.is_end = is_end


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long what may take, in seconds.

    Attributes:
        open_s: Until the other side has answered and named its streams.
        first_frame_s: From there to the first picture.
        read_s: Without data, or without a picture, once there was one.
    """

    open_s: float
    first_frame_s: float
    read_s: float


class Connection:
    """A stream of pictures, for as long as it lasts.

    Args:
        address: Where.
        deadlines: How long what may take.
        decoder: ``software``, or the name of a decoder that is preferred.
        threads: Threads of a software decoder.
        on_broken: Told why a picture could not be decoded; the stream goes on.

    Raises:
        ConnectionLostError: It cannot be opened.
    """

    def __init__(
        self,
        address: Address,
        deadlines: Deadlines,
        decoder: str,
        threads: int,
        on_broken: Callable[[str], None],
    ) -> None:
        self._deadlines = deadlines
        self._on_broken = on_broken
        self._has_times = address.format not in WITHOUT_TIMES
        hardware, refused = acceleration(decoder)
        try:
            self._container = _open(address, deadlines, hardware)
        except ConnectionLostError as error:
            if hardware is None:
                raise
            # Only without it is it known whose fault it was.
            self._container = _open(address, deadlines, None)
            refused = f"{decoder} {error}"
        try:
            self._stream = _stream_of(self._container)
            self.decoder: Decoder = decoder_of(
                self._container, self._stream, decoder, refused, threads
            )
        except BaseException:
            self._container.close()
            raise

    def frames(self) -> Iterator[tuple[VideoFrame, int | None]]:
        """Yield each picture and its time in ns by the container, None where it has none.

        Raises:
            ConnectionLostError: Always, in the end.
        """
        last_s = time.monotonic()
        within_s = self._deadlines.first_frame_s
        for frame in self._decoded():
            if frame is not None:
                yield frame, self._time_of(frame)
                last_s = time.monotonic()
                within_s = self._deadlines.read_s
            elif time.monotonic() - last_s > within_s:
                raise ConnectionLostError(f"sent no picture for {within_s:g} s")

    def describe(self, frame: VideoFrame) -> str:
        """Return what comes, and how it is decoded."""
        decoder = self.decoder
        how = f"{decoder.actual} decoder"
        if decoder.refused:
            how += f" ({decoder.refused})"
        return f"{decoder.context.name} {frame.width}x{frame.height}, {how}"

    def close(self) -> None:
        """Hang up."""
        self._container.close()

    def _decoded(self) -> Iterator[VideoFrame | None]:
        """Yield every picture, and None for each packet that has none."""
        context = self.decoder.context
        packets = self._container.demux(self._stream)
        while True:
            start_s = time.monotonic()
            try:
                packet = next(packets, None)
            except FFmpegError as error:
                raise self._lost(error, time.monotonic() - start_s) from None
            if packet is None or not packet.size:  # the packet that flushes comes at the end
                raise ConnectionLostError("ended the stream", is_end=True)
            yield None
            try:
                yield from context.decode(packet)
            except FFmpegError as error:
                self._on_broken(said(error))

    def _lost(self, error: FFmpegError, waited_s: float) -> ConnectionLostError:
        read_s = self._deadlines.read_s
        if isinstance(error, av.error.ExitError) or waited_s >= NEARLY * read_s:
            return ConnectionLostError(f"sent nothing for {read_s:g} s")
        return ConnectionLostError(f"broke off ({said(error)})")

    def _time_of(self, frame: VideoFrame) -> int | None:
        base = frame.time_base
        if frame.pts is None or base is None or not self._has_times:
            return None
        return frame.pts * base.numerator * NS // base.denominator


def _open(address: Address, deadlines: Deadlines, hardware: HWAccel | None) -> InputContainer:
    start_s = time.monotonic()
    try:
        container: InputContainer = av.open(
            address.url,
            format=address.format,
            options=dict(address.options),
            timeout=(deadlines.open_s, deadlines.read_s),
            hwaccel=hardware,
            **_LENIENT,
        )
        return container
    except (FFmpegError, ValueError) as error:
        reason = _why_not_open(error, address, time.monotonic() - start_s, deadlines.open_s)
        raise ConnectionLostError(reason) from None  # their text has the address


def _stream_of(container: InputContainer) -> VideoStream:
    name = container.format.name
    if any(name == one or name.endswith(one) for one in NOT_VIDEO):
        raise ConnectionLostError(f"sends no video (FFmpeg takes it for '{name}')")
    for stream in container.streams.video:
        if getattr(stream, "codec_context", None) is not None:
            return stream
    raise ConnectionLostError("sends no video that this build of FFmpeg can decode")


def _why_not_open(error: Exception, address: Address, took_s: float, open_s: float) -> str:
    """Return why something cannot be opened, in words that never hold the address."""
    if isinstance(error, av.error.ExitError) or took_s >= NEARLY * open_s:
        return f"did not answer within {open_s:g} s"
    if not isinstance(error, FFmpegError):
        return f"cannot be opened: FFmpeg has no format '{address.format}'"
    known = OF_V4L2 if address.format == V4L2 else OF_SERVERS
    for kind, words in known.items():
        if isinstance(error, kind):
            return words
    return f"cannot be opened ({said(error)})"
