"""How the live sources of a run are, as their nodes have noted it in the ledger."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgert.stages.live import STATES
from edgert.transport.ledger import Ledger, StreamBlock


class SourceState(msgspec.Struct, frozen=True):
    """How a live source is; see ``Condition`` in ``stages/live.py``."""

    state: str
    reason: str
    media: str
    reconnects: int
    epochs: int
    scaled: int = 0
    damaged: int = 0


def live_sources(ledger: Ledger, streams: Iterable[str]) -> dict[str, SourceState]:
    """Return each live source by name; files are not among them."""
    blocks = {name: ledger.stream(name) for name in streams}
    return {
        name: SourceState(
            state=STATES[block.words[StreamBlock.STATE]],
            reason=block.text("reason"),
            media=block.text("media"),
            reconnects=block.words[StreamBlock.RECONNECTS],
            epochs=block.words[StreamBlock.EPOCHS],
            scaled=block.words[StreamBlock.SCALED],
            damaged=block.words[StreamBlock.DAMAGED],
        )
        for name, block in blocks.items()
        if block.words[StreamBlock.STATE]
    }
