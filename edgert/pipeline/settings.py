"""``--set stage.key=value``: values of the command line over those of the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from edgert.errors import Fault, PipelineError
from edgert.pipeline.construct import Constructor
from edgert.pipeline.marks import Loc, Mark, Marks
from edgert.pipeline.near import choices
from edgert.pipeline.yamltext import compose

_TOP = ("devices", "limits", "name", "restart", "stages", "version")
_FORM = "Write --set STAGE.KEY=VALUE, for example --set detector.requests=2"


class _SettingError(ValueError):
    def __init__(self, fault: str, mend: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.mend = mend


def apply_settings(value: Any, marks: Marks, settings: Sequence[str]) -> list[Fault]:
    """Write settings into the value of a file; the last one of a key wins.

    Args:
        value: Plain value of the whole file, changed in place.
        marks: Marks of the file; what is set is marked with its setting.
        settings: Texts of the form ``stage.key=value``.

    Returns:
        A fault for each setting that could not be applied.
    """
    faults = []
    for text in settings:
        try:
            _apply(value, marks, text)
        except _SettingError as error:
            faults.append(Fault("the setting", error.fault, error.mend, f"--set {text}"))
    return faults


def _apply(value: Any, marks: Marks, text: str) -> None:
    path, equals, written = text.partition("=")
    parts = path.strip().split(".")
    if not equals or "" in parts:
        raise _SettingError("it is not of the form STAGE.KEY=VALUE", _FORM)
    loc: Loc = tuple(parts) if parts[0] in _TOP else ("stages", *parts)
    holder = _holder(value, loc)
    new, constructed = _read(written.strip(), text)
    holder[loc[-1]] = new
    marks.forget(loc)
    for below, mark in constructed.table.items():
        marks.table[loc + below] = mark


def _holder(value: Any, loc: Loc) -> dict[str | int, Any]:
    """Return the mapping that a key path ends in, making those that are not there yet."""
    if loc[0] == "stages":
        _find_stage(value, loc)
    here = value
    for depth, part in enumerate(loc[:-1]):
        if not isinstance(here, dict):
            break
        # A new mapping never makes a stage: those were looked up above.
        here = here.setdefault(part, {}) if depth else here.setdefault(str(part), {})
    if not isinstance(here, dict):
        key = ".".join(map(str, loc[:-1]))
        raise _SettingError(f"'{key}' is not a mapping", "Set it as a whole")
    return here


def _find_stage(value: Any, loc: Loc) -> None:
    stages = value.get("stages") if isinstance(value, dict) else None
    names = list(stages) if isinstance(stages, dict) else []
    if len(loc) < 3:
        raise _SettingError("it names no key of a stage", _FORM)
    if loc[1] not in names:
        mend = choices(str(loc[1]), names, "Stages")
        raise _SettingError(f"there is no stage '{loc[1]}'", mend)


def _read(written: str, text: str) -> tuple[Any, Marks]:
    """Read the value of a setting as YAML; nothing at all is empty text."""
    constructor = Constructor("")
    value: Any = ""
    try:
        node = compose(written, "")
        if node is not None:
            value = constructor.construct(node)
    except PipelineError as error:
        raise _unreadable(error.faults[0].fault) from None
    if constructor.faults:
        raise _unreadable(constructor.faults[0].fault)
    marks = Marks("", {loc: _set(mark, text) for loc, mark in constructor.marks.table.items()})
    marks.table.setdefault((), Mark(0, 0, 0, 0, "", is_loose=True, setting=text))
    return value, marks


def _set(mark: Mark, text: str) -> Mark:
    return replace(mark, is_loose=True, setting=text)


def _unreadable(fault: str) -> _SettingError:
    return _SettingError(
        f"its value is not YAML: {fault}", "Quote it twice: --set 'STAGE.KEY=\"VALUE\"'"
    )
