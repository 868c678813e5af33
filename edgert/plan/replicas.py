"""A stage that runs as several workers: what each of them is called, and how it differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edgert.pipeline.adapter import plain_of
from edgert.pipeline.check_devices import devices_of
from edgert.pipeline.spec import StageSpec
from edgert.stages.base import StageOptions


class Replica(msgspec.Struct, frozen=True):
    """One worker's share of a stage.

    Attributes:
        name: The stage's name; with a number where it is one of several: ``detector.1``.
        settings: Those of its options that the file has, as plain values.
        devices: The devices it asks for, in order; empty where its kind knows none.
        is_one_of_several: Whether frames of the stage go to others, too.
    """

    name: str
    settings: dict[str, Any]
    devices: tuple[str, ...]
    is_one_of_several: bool = False


Replicas = Mapping[str, tuple[Replica, ...]]


def replicas_of(name: str, spec: StageSpec, options: StageOptions) -> tuple[Replica, ...]:
    """Return the workers' shares of a stage: one, ``replicas``, or one for each of ``balance``."""
    balanced: list[str] = getattr(options, "balance", [])
    settings = plain_of(options, spec.settings)
    shares: list[tuple[dict[str, Any], tuple[str, ...]]]
    if balanced:
        common = {key: value for key, value in settings.items() if key != "balance"}
        shares = [({**common, "device": device}, (device,)) for device in balanced]
    else:
        shares = [(settings, devices_of(options))] * spec.replicas
    if len(shares) == 1:
        return (Replica(name, *shares[0]),)
    return tuple(
        Replica(f"{name}.{number}", *share, is_one_of_several=True)
        for number, share in enumerate(shares, 1)
    )
