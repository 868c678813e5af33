"""Describes decoded frames and writes them into the slots of one port."""

from __future__ import annotations

from typing import Any

from av.video.frame import VideoFrame

from edgert.stages.base import StageContext
from edgert.stages.source.picture import Picture, look_of, picture_of, write_picture
from edgert.tensor import FrameHeader, PortSpec
from edgert.transport.slot import Loan
from edgert.wording import counted


class Painter:
    """The last step of every video source, whether a file or a camera.

    Attributes:
        scaled: Frames larger than their slot, scaled down.
        damaged: Frames that the decoder could only give in part.
    """

    def __init__(self, port: PortSpec, context: StageContext) -> None:
        self._context = context
        self._format, self._max_width, self._max_height = _room(port)
        self._frame: VideoFrame | None = None
        self._look: tuple[Any, ...] = ()
        self._picture: Picture
        self.scaled = self.damaged = 0

    def take(self, frame: VideoFrame, pts_ns: int, captured_ns: int, epoch: int = 0) -> FrameHeader:
        """Keep a frame for ``write``, and describe it."""
        self._frame = frame
        if look_of(frame) != self._look:
            self._change_picture(frame)
        picture = self._picture
        self.scaled += picture.is_scaled
        self.damaged += frame.is_corrupt
        return FrameHeader(
            epoch=epoch,
            pts_ns=pts_ns,
            captured_ns=captured_ns,
            width=picture.width,
            height=picture.height,
            transform=picture.transform,
            pixel_format=picture.pixel_format,
            colour_matrix=picture.colour_matrix,
            colour_range=picture.colour_range,
            is_partial=frame.is_corrupt,
        )

    def let_go(self) -> None:
        """Forget the frame."""
        self._frame = None

    def write(self, loan: Loan) -> None:
        """Write the frame last taken."""
        if self._frame is None:
            raise AssertionError("write() without a frame that was grabbed")
        self._context.copied_bytes += write_picture(self._frame, self._picture, loan)
        self._frame = None

    def tell(self, *more: tuple[int, str]) -> None:
        """Say how many frames were out of the ordinary; ``more`` has counts of others."""
        for count, what in (
            *more,
            (self.scaled, "larger than the slot: scaled down"),
            (self.damaged, "damaged: decoded as far as that goes"),
        ):
            if count:
                said = f"{counted(count, 'frame')} {what}"
                self._context.log.warning("%s: %s", self._context.place, said)

    def _change_picture(self, frame: VideoFrame) -> None:
        is_first = not self._look
        self._look = look_of(frame)
        self._picture = picture_of(frame, self._format, self._max_width, self._max_height)
        log, place, picture = self._context.log, self._context.place, self._picture
        if not is_first:
            log.info("%s: frames are %dx%d from here", place, picture.width, picture.height)
        if picture.is_scaled:
            log.warning(
                "%s: frames of %dx%d are scaled down to fit %dx%d; `max_size` makes room for more",
                place, picture.width, picture.height, self._max_width, self._max_height,
            )  # fmt: skip


def _room(port: PortSpec) -> tuple[str, int, int]:
    """Return pixel format and largest width and height of an image port of one format."""
    height, width = next(iter(port.tensors.values())).shape[:2]
    planes = {"y": "gray8", "y u v": "i420", "y uv": "nv12", "bgr": "bgr24", "rgb": "rgb24"}
    return planes[" ".join(port.tensors)], width or 0, height or 0
