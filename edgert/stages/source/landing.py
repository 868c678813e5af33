"""Where to land in a file so that decoding goes on at a frame: found by reading packets alone.

A frame is known by its number in the order of presentation. Packets come in the order of decoding
and cost a hundredth of a frame, so the file is read to a little behind the frame, decoding nothing:
its time is the n-th smallest, and the last key frame that is not after it is where to begin.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from operator import attrgetter
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


class Play(NamedTuple):
    """One play of a file.

    Attributes:
        frames: How many it has.
        last: Time of the last one, in units of the stream.
        last_duration: How long that is shown; 0 where it is not told.
    """

    frames: int
    last: int
    last_duration: int


def find_landing(path: str, place: str, number: int) -> Landing | None:
    """Return where to land for a frame; None where times do not tell, or nothing is won."""
    marks = _marks(path, place, number + _REORDERED_AT_MOST)
    return _landing(marks, number) if marks else None


def find_play(path: str, place: str) -> Play | None:
    """Return what each play of a file has; None where its packets do not tell."""
    marks = _marks(path, place)
    if not marks or len({mark.pts for mark in marks}) != len(marks):
        return None
    last = max(marks, key=attrgetter("pts"))
    return Play(len(marks), last.pts, last.end - last.pts)


def _marks(path: str, place: str, at_most: int = sys.maxsize) -> list[_Mark]:
    """Return the packets of a file, in their order; none where one is not as it should be."""
    container, stream = open_video(path, place)
    marks: list[_Mark] = []
    try:
        for packet in container.demux(stream):
            if not packet.size:
                continue
            if packet.pts is None or packet.is_discard or packet.is_corrupt:
                return []
            end = packet.pts + (packet.duration or 0)
            marks.append(_Mark(packet.pts, end, packet.is_keyframe))
            if len(marks) > at_most:
                return marks
        are_all = len(marks) >= stream.frames  # else some are told lost, nobody knows where
    except FFmpegError:
        return []
    finally:
        container.close()
    return marks if are_all else []


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
