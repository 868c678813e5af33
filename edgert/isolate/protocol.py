"""What the two processes say to each other, as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from edgert.errors import Fault


class Request(msgspec.Struct, frozen=True):
    """What the child is to do: import ``function`` and call it with ``arguments`` as keywords."""

    function: str
    arguments: dict[str, Any]


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of it: a result, an error of ours by class and faults, or another exception."""

    result: Any = None
    error: str = ""
    faults: tuple[Fault, ...] = ()
    raised: str = ""
