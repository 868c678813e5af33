"""What a pipeline file may ask of a model that is to take the place of another."""

from __future__ import annotations

from edgert.options import Options, option


class SwapOptions(Options):
    """What an heir of a stage has to show on the same frames as the one that runs."""

    max_p95_ratio: float | None = option(
        default=None,
        gt=0,
        le=1000,
        description="Most that its p95 inference time may be, in times that of the one that runs; "
        "each infers alone, in turns. Left out: told, not judged.",
    )
    min_agreement: float | None = option(
        default=None,
        gt=0,
        le=1,
        description="Least share, 0 to 1, of what both find that they find alike: of the boxes "
        "where a stage behind makes detections, else of the outputs. Left out: told, not judged.",
    )
    frames: int = option(
        default=50,
        ge=1,
        le=10_000,
        description="Frames that both infer. Of fewer than 20 the p95 is the longest.",
    )
    timeout_s: float = option(
        default=60,
        gt=0,
        le=3600,
        description="Seconds in which it has to have had all of them; a camera that is offline "
        "brings none.",
    )
