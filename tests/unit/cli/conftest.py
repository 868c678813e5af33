"""Logging as it was before a test, put back after it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def edgert_logging() -> Iterator[logging.Logger]:
    """The logger of edgert; the set-up of the root logger is put back afterwards."""
    root, ours = logging.getLogger(), logging.getLogger("edgert")
    before = (root.level, root.handlers[:], ours.level)
    yield ours
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    ours.setLevel(before[2])
