"""What an opened stage knows of its surroundings, and tells them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from edgert.tensor import PortSpec
from edgert.transport.address import Array

Ports: TypeAlias = Mapping[str, PortSpec]

# What a stage's report calls the device as it was tried: by that the supervisor knows it again.
ATTEMPT = "attempt"
OnAttempt = Callable[[str, float, Mapping[str, str]], None]


def nobody_counts(*_: object) -> None:
    """Outside a run nobody stops what takes too long."""


@dataclass(slots=True)
class StageContext:
    """What an opened stage knows of its surroundings.

    Attributes:
        name: The stage's name in the file.
        place: ``stage 'NAME'``, with which errors begin.
        inputs: What arrives on each connected input port.
        outputs: What each connected output port carries; a port nobody reads is absent.
        threads: How many threads this stage's libraries may use.
        streams: Name of each stream by its number.
        folder: Folder that relative paths start from.
        log: The stage's logger.
        report: Facts for the summary, filled in ``open``; ``infer`` sets ``device`` there.
        copied_bytes: Bytes this stage moved other than its first write into its own loan.
        restarts: How often its worker was restarted in this run; what was written then is kept.
        refused: Device -> why it refused, of earlier starts; these are not tried again.
        lost: Device -> how it failed while it ran, the last one last; others are tried first.
        on_wait: Called while the stage waits for somebody outside: that is no hang.
        on_attempt: Called with device, seconds and refusals so far before a device is opened.
        results_fd: Standard output as a sink may write to it; in a worker, what is printed goes to
            standard error.
    """

    name: str
    place: str
    inputs: Ports
    outputs: Ports
    threads: int = 1
    streams: tuple[str, ...] = ("camera",)
    folder: str = "."
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("edgert"))
    report: dict[str, Any] = field(default_factory=dict)
    copied_bytes: int = 0
    restarts: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    on_wait: Callable[[], None] = nobody_counts
    on_attempt: OnAttempt = nobody_counts
    results_fd: int = 1

    def copy(self, source: Array, into: Array) -> None:
        """Copy an array and count its bytes: the way to copy pixels that is no first write."""
        into[...] = source
        self.copied_bytes += source.nbytes
