"""Decoders by name: hardware where it is there, software with the reason where it is not."""

from __future__ import annotations

from dataclasses import dataclass

from av.codec import Codec
from av.codec.codec import UnknownCodecError
from av.codec.hwaccel import HWAccel, hwdevices_available
from av.container import InputContainer
from av.error import FFmpegError
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

SOFTWARE = "software"
# Decoders of their own, named CODEC_NAME; the others are accelerations of the software decoder.
OF_THEIR_OWN = frozenset(("v4l2m2m", "rkmpp", "cuvid", "mediacodec", "mmal"))


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder that was opened.

    Attributes:
        context: It.
        actual: ``software``, or the name asked for.
        refused: Why it is not the one asked for; empty where it is.
    """

    context: VideoCodecContext
    actual: str
    refused: str = ""


def acceleration(name: str) -> tuple[HWAccel | None, str]:
    """Return the acceleration that a container is opened with, or why there is none of that name.

    Both are empty for software, and for a decoder of its own.
    """
    if name == SOFTWARE or name in OF_THEIR_OWN:
        return None, ""
    if name not in hwdevices_available():
        known = ", ".join(hwdevices_available()) or "none"
        return None, f"this build of FFmpeg has no {name} (it has: {known})"
    return HWAccel(name, allow_software_fallback=True), ""


def decoder_of(
    container: InputContainer, stream: VideoStream, name: str, refused: str, threads: int
) -> Decoder:
    """Return the decoder of a stream: the one of that name if it opens, else software.

    Args:
        container: It was opened with ``acceleration(name)``.
        stream: What is decoded.
        name: What was asked for.
        refused: Why that is out of the question; empty where it is not.
        threads: Threads of a software decoder.
    """
    context = stream.codec_context
    if name in OF_THEIR_OWN:
        own, refused = _of_its_own(f"{context.name}_{name}", context)
        if own is not None:
            return Decoder(own, name)
    elif name != SOFTWARE and not refused:
        if context.is_hwaccel:
            return Decoder(context, name)
        refused = f"the device does not decode {context.name}, or is not there"
    stream.thread_type = "AUTO" if threads > 1 else "NONE"
    context.thread_count = threads
    return Decoder(context, SOFTWARE, refused)


def _of_its_own(name: str, like: VideoCodecContext) -> tuple[VideoCodecContext | None, str]:
    try:
        context = VideoCodecContext.create(Codec(name, "r"))
    except UnknownCodecError:
        return None, f"this build of FFmpeg has no {name}"
    if not isinstance(context, VideoCodecContext):
        return None, f"{name} decodes no video"
    if like.extradata:
        context.extradata = like.extradata
    context.width, context.height = like.width, like.height
    try:
        context.open()
    except FFmpegError as error:
        return None, f"{name} does not open ({(error.strerror or str(error)).lower()})"
    return context, ""
