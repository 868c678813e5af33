"""Where to land in a file so that decoding goes on at a frame: found by reading packets alone.

A frame is known by its number in the order of presentation. Packets come in the order of decoding
and cost a hundredth of a frame, so the file is read to a little behind the frame, decoding nothing:
its time is the n-th smallest, and the last key frame that is not after it is where to begin.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from av.error import FFmpegError

from edgert.stages.source.container import open_video

# Frames that the order of decoding may differ by from the order of presentation: H.265 has 16.
_REORDERED_AT_MOST = 64


class Landing(NamedTuple):
    """A place in a file.

    Attributes:
        target: Time of the frame, in units of the stream.
        keyframe: Time of the key frame to begin at.
        packets_before: Packets before that key frame.
        frames_before: Frames that are shown before it.
        end: Where the last of those ends.
    """

    target: int
    keyframe: int
    packets_before: int
    frames_before: int
    end: int


class _Mark(NamedTuple):
    pts: int
    end: int
    is_keyframe: bool


def find_landing(path: str, place: str, number: int) -> Landing | None:
    """Return where to land for a frame; None where times do not tell, or nothing is won."""
    container, stream = open_video(path, place)
    marks: list[_Mark] = []
    try:
        for packet in container.demux(stream):
            if not packet.size:
                continue
            if packet.pts is None or packet.is_discard or packet.is_corrupt:
                return None
            end = packet.pts + (packet.duration or 0)
            marks.append(_Mark(packet.pts, end, packet.is_keyframe))
            if len(marks) > number + _REORDERED_AT_MOST:
                break
    except FFmpegError:
        return None
    finally:
        container.close()
    return _landing(marks, number)


def _landing(marks: list[_Mark], number: int) -> Landing | None:
    times = sorted({mark.pts for mark in marks})
    if len(times) != len(marks) or number >= len(times):
        return None
    target = times[number]
    begins = [n for n, mark in enumerate(marks) if mark.is_keyframe and mark.pts <= target]
    if not begins or not begins[-1]:
        return None
    begin = begins[-1]
    keyframe = marks[begin].pts
    return Landing(target, keyframe, begin, times.index(keyframe), _last_end(marks[:begin]))


def _last_end(marks: Iterable[_Mark]) -> int:
    return max(mark.end for mark in marks)
