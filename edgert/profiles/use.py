"""What a plan says of the profile it took: plain data, all that a worker imports of it."""

from __future__ import annotations

from typing import Any

import msgspec


class ProfileUse(msgspec.Struct, frozen=True):
    """The profile of a plan.

    Attributes:
        name: Its name.
        why: Why this one, for people.
        file: Its file.
        given: Stage -> keys that it filled in, with their values.
    """

    name: str
    why: str
    file: str
    given: dict[str, dict[str, Any]] = {}
