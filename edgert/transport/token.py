"""A token: 16 bytes that stand for a frame, and travel through a pipe while its pixels stay put.

    | u64 sequence | u32 slot | u16 stream | u8 kind | u8 reason |

A slot that is given back (FREE) has the frame's sequence and stream again, so that a token that
comes twice frees nothing else; there ``reason`` is the number of the edge among those of its ring.

Every frame yields exactly one token per output port, a FRAME or a GAP; every leaf answers each
frame with one DONE to the source's gate (there ``slot`` is the number of the leaf).
"""

from __future__ import annotations

import struct

TOKEN = struct.Struct("<QIHBB")
TOKEN_BYTES = TOKEN.size

Token = tuple[int, int, int, int, int]
"""(sequence, slot, stream, kind, reason)"""

FRAME, GAP, END, DONE, FREE, AGAIN, LAST = range(7)
"""Kinds: a slot with a frame | a frame that will not come | the stream's end | a leaf is done with
a frame | a slot is given back | a slot with a frame, of which the reader may have heard or which
comes out of its order | nothing comes any more, unless another worker of the stage dies."""

ALONE = 1
"""In the place of a reason, of AGAIN: a process has died with the frame in work; no other such
frame is taken beside it, so that a second death shows whose fault it is."""

NONE, FILTERED, DROPPED, LOST = range(4)
"""Reasons of a gap and outcomes of a DONE, the worse the higher."""

REASONS = ("processed", "filtered", "dropped", "lost")
