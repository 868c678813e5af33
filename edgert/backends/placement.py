"""How much of a model a device took, where a runtime may split it between device and CPU."""

from __future__ import annotations

import msgspec

from edgert.errors import DeviceError


class Placement(msgspec.Struct, frozen=True):
    """How many of a model's parts a device took.

    Attributes:
        taken: Parts it took.
        of: Parts there are.
        parts: What they are called.
    """

    taken: int
    of: int
    parts: str = "operators"

    def __str__(self) -> str:
        """Return it as the report has it."""
        return f"{self.taken} of {self.of} {self.parts}"


def landed(found: Placement | None, device: str, place: str, *, whole: bool) -> str:
    """Return where a model runs: ``device``, or ``device,CPU`` where the CPU computes the rest.

    Args:
        found: What was counted; None where the runtime does not tell.
        device: The device that was asked for.
        place: With which the error begins.
        whole: Whether the device must have taken all.

    Raises:
        DeviceError: It took nothing, or not all where it must.
    """
    if found is None:
        return "unknown"
    if not found.taken:
        fault = f"it took none of the model's {found.of} {found.parts}"
        raise DeviceError(place, fault, "Is the model made for it (quantised, compiled)")
    if found.taken == found.of:
        return device
    if whole:
        mend = "Write 'fallback: allow' to let the CPU compute the rest"
        raise DeviceError(place, f"it took only {found} of the model", mend)
    return f"{device},CPU"
