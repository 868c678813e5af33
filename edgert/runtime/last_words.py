"""What a worker tells of an error before its process ends."""

from __future__ import annotations

from edgert.control.messages import SaidFault
from edgert.errors import DeviceLostError, EdgertError, UserError


def says_all(error: EdgertError) -> bool:
    """Whether a trace would add nothing: the user has to act, or a device failed, not a stage."""
    told = isinstance(error, UserError | DeviceLostError)
    return told or all(fault.mend for fault in error.faults)


def said(error: EdgertError) -> tuple[SaidFault, ...]:
    """Return the faults of an error as they travel."""
    return tuple(SaidFault(fault.place, fault.fault, fault.mend) for fault in error.faults)
