"""The messages between a run and who controls it (``edgert ctl``): two unions, by direction."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from edgert.control.messages import SaidFault

_Text = Annotated[str, msgspec.Meta(max_length=4096)]
Level = Literal["debug", "info", "warning", "error"]


class GetStatus(msgspec.Struct, tag="status", frozen=True, forbid_unknown_fields=True):
    """Say where the run stands."""


class Drain(msgspec.Struct, tag="drain", frozen=True, forbid_unknown_fields=True):
    """Let every stream end, as SIGTERM does."""


class SetLogLevel(msgspec.Struct, tag="log-level", frozen=True, forbid_unknown_fields=True):
    """Log from this level on, here and in every worker."""

    level: Level


class Restart(msgspec.Struct, tag="restart", frozen=True, forbid_unknown_fields=True):
    """Let the worker of a stage be followed by another, at the boundary of a frame."""

    stage: _Text


class Set(msgspec.Struct, tag="set", frozen=True, forbid_unknown_fields=True):
    """Change one key of a stage.

    Attributes:
        key: ``stage.key``.
        value: Its value as YAML.
    """

    key: _Text
    value: _Text


class Reload(msgspec.Struct, tag="reload", frozen=True, forbid_unknown_fields=True):
    """Read the file again, and take over what has changed."""


ToRun = GetStatus | Drain | SetLogLevel | Restart | Set | Reload


class StatusIs(msgspec.Struct, tag="status", frozen=True):
    """Where the run stands: ``edgert.status/1`` as plain values."""

    status: dict[str, Any]


class Done(msgspec.Struct, tag="done", frozen=True):
    """It was done.

    Attributes:
        said: What was done, for people.
    """

    said: str


class Refused(msgspec.Struct, tag="refused", frozen=True):
    """It was not done, and nothing has changed.

    Attributes:
        faults: Why.
        exit_code: Of the error that they are (``errors.py``).
    """

    faults: tuple[SaidFault, ...]
    exit_code: int


class Underway(msgspec.Struct, tag="under-way", frozen=True):
    """It takes a while; another answer follows.

    Attributes:
        said: How far it has come, for people.
    """

    said: str


FromRun = StatusIs | Done | Refused | Underway
