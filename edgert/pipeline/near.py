"""Near misses: what somebody may have meant who wrote a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

NAMES_SHOWN = 24
NAMES_COMPARED = 200  # beyond that a comparison with each takes too long


def near_miss(written: str, known: Iterable[str]) -> str:
    """Return the known name that comes closest, or an empty string."""
    by_lower = {name.lower(): name for name in islice(known, NAMES_COMPARED)}
    near = get_close_matches(written.lower()[:80], by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else ""


def choices(written: str, known: Iterable[str], title: str) -> str:
    """Return a mend that names the near miss and what there is.

    Args:
        written: The name that there is not.
        known: The names that there are.
        title: What these are, for example ``Its keys``.
    """
    names = list(known)
    near = near_miss(written, names)
    meant = f"Did you mean '{near}'? " if near else ""
    if not names:
        return f"{meant}{title}: none"
    more = ", ..." if len(names) > NAMES_SHOWN else ""
    return f"{meant}{title}: {', '.join(names[:NAMES_SHOWN])}{more}"
