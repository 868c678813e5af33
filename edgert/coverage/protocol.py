"""What the crew and its children say to each other: one JSON line each, strictly in turn."""

from __future__ import annotations

from typing import Any

import msgspec

from edgert.coverage.adapter import Answer, Work
from edgert.coverage.compare import Difference


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """Which adapter a child is to host. The first line to a child; it answers with ``Facts``.

    Attributes:
        target: ``module:Class``, constructed with ``device`` and ``options``.
        device: In the adapter's own words.
        options: The adapter's own.
        memory_bytes: What the child may allocate; 0 for no limit.
        python: Interpreter of the environment the adapter lives in; empty for this one.
    """

    target: str
    device: str
    options: dict[str, Any] = {}
    memory_bytes: int = 0
    python: str = ""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work, and what its outputs are compared with.

    Attributes:
        work: What the adapter is asked.
        expected: File of reference outputs; empty: nothing is compared.
        rtol: See ``compare``.
        atol: See ``compare``.
        steps: See ``compare``.
        keep: File to which the outputs are written; empty: nowhere.
    """

    work: Work
    expected: str = ""
    rtol: float = 0.0
    atol: float = 0.0
    steps: int = 0
    keep: str = ""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

    Attributes:
        answer: The adapter's; None where it raised, or the child ended.
        difference: The comparison; None where there was none.
        raised: What the adapter raised.
        crashed: How the child ended instead of answering.
        timed_out: Whether it was ended for taking too long.
    """

    answer: Answer | None = None
    difference: Difference | None = None
    raised: str = ""
    crashed: str = ""
    timed_out: bool = False
