"""Options of a run that cannot be are refused where they are written, not by a worker."""

from __future__ import annotations

from typing import Any

import pytest

from edgert.errors import UserError
from edgert.runtime.run import RunOptions


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_frames": "3"}, "max_frames: it cannot be '3'. Give a whole number, 0 for no limit."),
        ({"max_frames": -1}, "max_frames: it cannot be -1. Give a whole number, 0 for no limit."),
        ({"duration_s": float("nan")}, "duration_s: it cannot be nan. Give a number of seconds."),
        ({"stop_timeout_s": -1}, "stop_timeout_s: it cannot be -1. Give a number of seconds."),
        (
            {"log_level": "loud"},
            "log_level: it cannot be 'loud'. Give one of debug, info, warning, error.",
        ),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        RunOptions(**options)
    assert str(caught.value) == f"RunOptions, {said}"


def test_none_is_needed() -> None:
    assert RunOptions() == RunOptions(0, 0.0, 10.0, "info", 1)
