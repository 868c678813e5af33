"""How counts are said: ``1 frame``, ``2 frames``."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an ``s`` for all but one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
