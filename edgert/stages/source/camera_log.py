"""What the log says of a camera: each thing once, since it may come and go for years."""

from __future__ import annotations

from edgert.stages.base import StageContext
from edgert.stages.source.hardware import Decoder


class CameraLog:
    """Remembers what was said of one camera."""

    def __init__(self, context: StageContext) -> None:
        self._log, self._place = context.log, context.place
        self._reasons: set[str] = set()  # since it was last there for a while
        self._has_told_loss = False
        self._media = ""
        self._refused = ""
        self._has_told_broken = False

    def steady(self) -> None:
        """It was there for a while: what is said of it is news again."""
        self._reasons.clear()

    def online(self, media: str) -> None:
        """It is there, or back, with these pictures."""
        if media != self._media or self._has_told_loss:
            word = "is back" if self._media else "is online"
            self._log.info("%s: the camera %s: %s", self._place, word, media)
        self._media = media
        self._has_told_loss = False

    def decoder(self, decoder: Decoder, asked: str) -> None:
        """It is decoded by something else than was asked for."""
        if decoder.refused and decoder.refused != self._refused:
            self._refused = decoder.refused
            text = "%s: decoder '%s' cannot be had: %s; software decodes instead"
            self._log.warning(text, self._place, asked, decoder.refused)

    def lost(self, reason: str, *, is_over: bool) -> None:
        """It is gone."""
        if reason not in self._reasons:
            self._reasons.add(reason)
            self._has_told_loss = True
            what = "is given up" if is_over else "is tried again and again"
            self._log.warning("%s: the camera %s; it %s", self._place, reason, what)

    def broken(self, why: str) -> None:
        """One of its frames could not be decoded."""
        if not self._has_told_broken:
            self._has_told_broken = True
            text = "%s: a frame could not be decoded (%s); all are counted"
            self._log.warning(text, self._place, why)
