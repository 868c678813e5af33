"""The pipeline file of a service: checked where it stands and as it will stand, and planned."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from edgert.cli import check
from edgert.cli.planning import plan_file
from edgert.cli.progress import StatusLine
from edgert.cli.voice import say
from edgert.device import cores
from edgert.errors import Fault, PipelineError, UserError
from edgert.pipeline.load import read
from edgert.profiles.choose import choose
from edgert.service.layout import Layout
from edgert.service.variables import variables_of
from edgert.stages.registry import Registry


def examine(layout: Layout, name: str, file: Path) -> tuple[str, tuple[int, ...]]:
    """Return the text of a file that is fit to be service ``name``, and the cores of its plan.

    Raises:
        UserError: It is not fit; all faults are told.
    """
    variables = variables_of(layout, name)
    faults = _faults(file, variables) or _faults_elsewhere(file, variables)
    if faults:
        raise PipelineError(list(faults))
    _require_own_name(layout, name, file, variables)
    used = _cores(file, variables) if layout.is_here else ()
    return file.read_text(), used


def _faults(file: Path, variables: Mapping[str, str]) -> tuple[Fault, ...]:
    return check.examine(file, variables, (), Registry(), choose(None)).faults


def _faults_elsewhere(file: Path, variables: Mapping[str, str]) -> tuple[Fault, ...]:
    """Return what is wrong once the file is in another folder."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        copy.write_text(file.read_text())
        return tuple(_elsewhere(fault, file) for fault in _faults(copy, variables))


def _elsewhere(fault: Fault, file: Path) -> Fault:
    said = f"{fault.fault} (once the file is in /etc/edgert)"
    mend = "Write the whole path, from / on"
    return Fault(fault.place, said, mend, str(file), fault.line, fault.column)


def _require_own_name(layout: Layout, name: str, file: Path, variables: Mapping[str, str]) -> None:
    """Refuse a pipeline whose name another service has: only one of them could run."""
    own = read(file, variables, ()).spec.name
    for other in layout.names():
        if other == name:
            continue
        try:
            theirs = read(layout.pipeline(other), variables_of(layout, other), ()).spec.name
        except PipelineError:  # it cannot run as it is
            continue
        if theirs == own:
            fault = f"service '{other}' runs a pipeline of that name, and only one of them can"
            raise UserError(f"{file}: name '{own}'", fault, "Give it another `name`")


def _cores(file: Path, variables: Mapping[str, str]) -> tuple[int, ...]:
    """Return the cores of the plan; none where these are all there are, or nobody knows yet."""
    try:
        pipeline = plan_file(file, variables, (), pull=False, line=StatusLine(wanted=False))
    except UserError as error:
        say(f"no cores are set, since there is no plan yet: {error}")
        return ()
    used = {core for worker in pipeline.plan.workers for core in worker.cores}
    return () if used >= set(cores.allowed()) else tuple(sorted(used))
