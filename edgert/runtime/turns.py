"""Turns at devices with a limit of requests, as one process of a run takes part in them.

permit/DEVICE/r, permit/DEVICE/w    permits that nobody waits for
grant/STAGE/r, grant/STAGE/w        permits handed to a stage
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from edgert.plan.structs import StagePlan, Turns
from edgert.transport.ledger import Ledger, StageBlock
from edgert.transport.permits import Line, Office, Permits, drain, fill
from edgert.transport.queue import make_pipe

Fds = Mapping[str, int]


def create_turns(turns: Turns, fds: dict[str, int]) -> None:
    """Create the pipes of every limited device, with its permits in them."""
    for device, count in turns.limits.items():
        key = f"permit/{device}"
        fds[f"{key}/r"], fds[f"{key}/w"] = make_pipe()
        fill(fds[f"{key}/w"], count)
    for stage in turns.ranks:
        fds[f"grant/{stage}/r"], fds[f"grant/{stage}/w"] = make_pipe()


def keys_for_turns(turns: Turns, stages: Iterable[StagePlan]) -> Iterator[str]:
    """Yield the keys of the fds that a worker with these stages needs."""
    mine = [stage.name for stage in stages if stage.name in turns.ranks]
    if mine:
        yield from (f"permit/{device}/{end}" for device in turns.limits for end in "rw")
        yield from (f"grant/{stage}/w" for stage in turns.ranks)
        yield from (f"grant/{stage}/r" for stage in mine)


def _offices(turns: Turns, ledger: Ledger, fds: Fds) -> dict[str, Office]:
    lines = [
        Line(rank, ledger.stage(stage).words, fds[f"grant/{stage}/w"])
        for stage, rank in turns.ranks.items()
    ]
    return {
        device: Office(number, fds[f"permit/{device}/w"], lines)
        for number, device in enumerate(turns.limits, 1)
    }


def permits_for(
    turns: Turns, stage: str, device: str, ledger: Ledger, fds: Fds, log: logging.Logger
) -> Permits | None:
    """Return the permits of a stage that runs on ``device``; None where that has no limit."""
    if stage not in turns.ranks:
        return None
    if device not in turns.limits:
        for named in turns.limits:
            if _family(named) == _family(device):
                log.warning(
                    "stage '%s': the limit of '%s' is not its own: it runs on '%s'",
                    *(stage, named, device),
                )
        return None
    office = _offices(turns, ledger, fds)[device]
    grant, pool = fds[f"grant/{stage}/r"], fds[f"permit/{device}/r"]
    return Permits(office, ledger.stage(stage), grant, pool)


def _family(device: str) -> str:
    """Return for example ``openvino:GPU`` of ``openvino:GPU.0,CPU``."""
    return device.partition(",")[0].partition(".")[0]


class TurnKeeper:
    """Gives back what workers that are gone had: the supervisor's part.

    Args:
        turns: Limits and stages.
        ledger: The ledger.
        fds: Every fd of the run.
    """

    def __init__(self, turns: Turns, ledger: Ledger, fds: Fds) -> None:
        self._turns = turns
        self._ledger = ledger
        self._fds = fds
        self._offices = list(_offices(turns, ledger, fds).values())

    def worker_gone(self, stages: Iterable[StagePlan]) -> None:
        """Hand on the permits that the stages of a worker had, or that were on their way there."""
        for stage in stages:
            if stage.name in self._turns.ranks:
                self._stage_gone(stage.name)

    def _stage_gone(self, stage: str) -> None:
        words = self._ledger.stage(stage).words
        device = words[StageBlock.DEVICE]
        words[StageBlock.WAITS] = words[StageBlock.DEVICE] = 0
        count = words[StageBlock.PERMITS] + drain(self._fds[f"grant/{stage}/r"])
        words[StageBlock.PERMITS] = 0
        for _ in range(count if device else 0):
            self._offices[device - 1].hand_on()
