"""Reads a pipeline file: text -> values with marks -> settings -> substitutions -> spec."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgert.errors import PipelineError
from edgert.pipeline.document import Document
from edgert.pipeline.marks import Loc, Marks
from edgert.pipeline.settings import apply_settings
from edgert.pipeline.spec import STAGE_NAME, PipelineSpec, StageSpec
from edgert.pipeline.substitute import substitute, unused_options
from edgert.pipeline.validate import Flaw, Subject, validate
from edgert.pipeline.yamlfile import read_yaml

# What stands in for a missing key, so that the rest of the file can still be checked.
UNKNOWN_KIND = "?"
_STAND_INS: dict[str | int, Any] = {"version": 1, "name": "unnamed", "kind": UNKNOWN_KIND}


def load(path: Path, variables: Mapping[str, str], settings: Sequence[str] = ()) -> Document:
    """Read a pipeline file that has no fault in itself.

    Args:
        path: The file.
        variables: Variables for ``${NAME}`` that go before those of the environment.
        settings: ``stage.key=value`` texts of ``--set``.

    Raises:
        PipelineError: It has faults; all of them are in it.
    """
    document = read(path, variables, settings)
    if document.faults:
        raise PipelineError(list(document.faults))
    return document


def read(path: Path, variables: Mapping[str, str], settings: Sequence[str] = ()) -> Document:
    """Read a pipeline file and keep its faults, so that ``check`` can add those of its graph.

    Args:
        path: The file.
        variables: Variables for ``${NAME}`` that go before those of the environment.
        settings: ``stage.key=value`` texts of ``--set``.

    Raises:
        PipelineError: Nothing can be made of the file; what is known of it is in it.
    """
    found = read_yaml(path, "pipeline")
    value, marks = found.value, found.marks
    faults = [*found.faults, *apply_settings(value, marks, settings)]
    warnings = unused_options(value, variables, str(path))
    value, unresolved = substitute(value, marks, {**os.environ, **variables})
    faults += unresolved
    spec, flaws, is_whole = _spec(Subject(value, (), marks))
    faulty = {(fault.line, fault.column) for fault in faults if fault.line}
    told = [flaw.told(marks) for flaw in flaws]
    faults += [fault for fault in told if (fault.line, fault.column) not in faulty]
    if spec is None:
        raise PipelineError(faults)
    return Document(path, spec, marks, tuple(faults), is_whole, tuple(warnings))


def _spec(subject: Subject) -> tuple[PipelineSpec | None, list[Flaw], bool]:
    """Validate; where there are flaws, once more without what is flawed."""
    spec, flaws = validate(PipelineSpec, subject)
    if spec is not None or not isinstance(subject.value, dict):
        return spec, flaws, True
    value = copy.deepcopy(subject.value)
    for flaw in flaws:
        _take_out(value, flaw)
    misnamed = _take_misnamed(value)
    spec, _ = validate(PipelineSpec, Subject(value, (), subject.marks))
    if spec is not None:
        stages = {**spec.stages, **_stages(misnamed, subject.marks)}
        spec = spec.model_copy(update={"stages": stages})
    return spec, flaws, not any(_is_of_graph(flaw.loc) for flaw in flaws)


def _is_of_graph(loc: Loc) -> bool:
    return loc[:1] == ("stages",) and (len(loc) < 3 or loc[2] == "inputs")


def _take_out(value: Any, flaw: Flaw) -> None:
    """Take what is flawed out of a value, or put a stand-in where something must be."""
    here = value
    for part in flaw.loc[:-1]:
        if not isinstance(here, dict) or part not in here:
            return
        here = here[part]
    if not isinstance(here, dict) or not flaw.loc:
        return
    key = flaw.loc[-1]
    if flaw.loc[:-1] == ("stages",) and not isinstance(here[key], dict):
        here[key] = {"kind": UNKNOWN_KIND}
    elif key in _STAND_INS:
        here[key] = _STAND_INS[key]
    elif flaw.loc[:-1] != ("stages",):
        here.pop(key, None)


def _take_misnamed(value: dict[str, Any]) -> dict[str, Any]:
    """Take the stages out whose name alone would be a flaw again."""
    stages = value.get("stages")
    if not isinstance(stages, dict):
        return {}
    names = [name for name in stages if not re.match(STAGE_NAME, name)]
    return {name: stages.pop(name) for name in names}


def _stages(values: Mapping[str, Any], marks: Marks) -> dict[str, StageSpec]:
    made = {name: validate(StageSpec, Subject(each, (), marks))[0] for name, each in values.items()}
    return {name: stage for name, stage in made.items() if stage is not None}
