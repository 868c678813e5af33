"""Pipelines of numbers that are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Stages = dict[str, dict[str, Any]]


def chain(folder: Path, count: int = 300, **step: Any) -> Stages:
    return {
        "src": {"kind": "Numbers", "count": count},
        "one": {"kind": "Step", "inputs": {"n": "src.n"}, **step},
        "out": {"kind": "Write", "inputs": {"n": "one.n"}, "path": str(folder / "out.txt")},
    }


def two_streams_joined(folder: Path, count: int = 300) -> Stages:
    """Two streams through one asynchronous stage, each frame joined with where it came from."""
    sources = ["left.n", "right.n"]
    return {
        "left": {"kind": "Numbers", "count": count},
        "right": {"kind": "Numbers", "count": count},
        "slow": {"kind": "AsyncStep", "inputs": {"n": sources}},
        "sum": {
            "kind": "Both",
            "inputs": {"a": sources, "b": "slow.n"},
            "path": str(folder / "sums.txt"),
        },
    }
