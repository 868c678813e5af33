"""The Python interface: load a pipeline, run it, or iterate over its results.

    import edgert
    for result in edgert.Pipeline.load("pipelines/detect.yaml").results():
        print(result.frame, len(result.detections))

A script needs no ``__main__`` guard: the caller's module is never imported again. Of descriptors 0
to 2 those that it has closed are opened on ``/dev/null``.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from edgert.errors import PipelineError, UserError
from edgert.models.describe import ModelReader
from edgert.pipeline.check import check
from edgert.pipeline.load import read
from edgert.plan.build import build_plan
from edgert.plan.structs import Plan
from edgert.processes import occupy_standard_numbers
from edgert.profiles.choose import choose_or_say
from edgert.results import Result, decode
from edgert.runtime.reload import Replan
from edgert.runtime.run import OnTick, Outcome, Run, RunOptions, run_plan
from edgert.runtime.summary import Summary
from edgert.stages.registry import Registry

_READ_BYTES = 1 << 16


class Pipeline:
    """A pipeline that was loaded, checked and planned.

    Attributes:
        plan: What will be started.
        warnings: What the check noticed that is not a fault, one line each.
        replan: Makes the plan of the file as it stands, with further settings; for reloads.
    """

    def __init__(
        self, plan: Plan, warnings: Sequence[str] = (), replan: Replan | None = None
    ) -> None:
        self.plan = plan
        self.warnings = tuple(warnings)
        self.replan = replan

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        variables: Mapping[str, str] | None = None,
        settings: Sequence[str] = (),
        models: ModelReader | None = None,
        profile: str | None = None,
    ) -> Pipeline:
        """Load a pipeline file and plan it; models that are missing are pulled.

        Args:
            path: The file.
            variables: Values for ``${NAME}`` before the environment's.
            settings: Changes, each ``stage.key=value``.
            models: Where models are described; by default a reader that pulls what is missing.
            profile: Device profile, a name or a path; by default the one that matches this machine.

        Raises:
            PipelineError: The file has faults; all of them are told.
            ModelError: A model cannot be had.
            UserError: An argument cannot be.
        """
        if isinstance(settings, str):  # which is a sequence, too, of letters
            fault = f"is a text, '{settings}'"
            raise UserError("argument `settings`", fault, f"Give a list: ['{settings}']")
        occupy_standard_numbers()
        kinds = Registry()
        chosen, wrong = choose_or_say(profile)
        document, known = chosen.apply(read(Path(path), variables or {}, settings), kinds)
        checked = check(document, kinds)
        if wrong:
            raise PipelineError([*wrong, *checked.faults])
        reader = models if models is not None else pulling_reader(document.folder)
        plan = build_plan(document, checked, kinds, reader, known)

        def replan(further: tuple[str, ...]) -> Plan:
            _forget(reader)
            again = cls.load(
                path,
                variables=variables,
                settings=[*settings, *further],
                models=reader,
                profile=profile,
            )
            return again.plan

        return cls(plan, [*chosen.warnings, *map(str, checked.warnings)], replan)

    def run(self, options: RunOptions | None = None, on_tick: OnTick | None = None) -> Summary:
        """Run to the end.

        Raises:
            EdgertError: The run failed; the first cause.
        """
        outcome = self.run_to_outcome(options or RunOptions(), on_tick)
        if outcome.errors:
            raise outcome.errors[0]
        return outcome.summary

    def run_to_outcome(self, options: RunOptions, on_tick: OnTick | None = None) -> Outcome:
        """Run to the end; failures are part of what is returned."""
        self.require_memory()
        occupy_standard_numbers()
        return run_plan(self.plan, options, on_tick, self.replan)

    def results(self, options: RunOptions | None = None) -> Iterator[Result]:
        """Run, and yield what every ``sink.jsonl`` with path ``-`` would print.

        A slow caller slows the pipeline down; leaving the loop early drains it. The run is looked
        after while the next result is asked for: what happens meanwhile, a worker that dies or the
        end of ``duration_s``, is dealt with then. A process that is forked meanwhile has nothing of
        the run: there the next result is refused, and dropping the results does nothing.

        Raises:
            UserError: No sink writes to ``-``.
            EdgertError: The run failed; raised after the results that there were.
        """
        if not any(
            stage.kind == "sink.jsonl" and stage.settings.get("path", "-") == "-"
            for stage in self.plan.stages()
        ):
            raise UserError(
                f"pipeline '{self.plan.name}'",
                "has no sink.jsonl whose path is '-'",
                "Add one: results() reads what it writes",
            )
        self.require_memory()
        return _results(self.plan, options or RunOptions())

    def require_memory(self) -> None:
        """Compare what the run needs at least with the memory there is.

        Raises:
            ResourceError: It does not fit.
        """
        from edgert.device import memory
        from edgert.plan.memory import need

        needed = need(self.plan)
        parts = {
            "rings": needed.rings,
            f"{len(self.plan.workers)} workers": needed.processes,
            "models": needed.weights,
        }
        said = ", ".join(f"{what} {memory.in_units(size)}" for what, size in parts.items() if size)
        place = f"pipeline '{self.plan.name}' ({said})"
        memory.require(needed.total, memory.available_bytes(), place, needed.mend)


def pulling_reader(folder: Path) -> ModelReader:
    """Return the reader of models that pulls what is missing."""
    from edgert.models.reader import Models

    return Models(folder, pull=True)


def _forget(reader: ModelReader) -> None:
    from edgert.models.reader import Models

    if isinstance(reader, Models):
        reader.forget()


def _results(plan: Plan, options: RunOptions) -> Iterator[Result]:
    occupy_standard_numbers()
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(read_fd, False)
    lines = _Lines(read_fd)
    try:
        try:
            run = Run(plan, replace(options, stdout_fd=write_fd))
        finally:
            os.close(write_fd)  # the zygote and its workers have theirs
        outcome = yield from _results_of(run, lines)
    finally:
        os.close(read_fd)
    if outcome.errors:
        raise outcome.errors[0]


def _results_of(run: Run, lines: _Lines) -> Generator[Result, None, Outcome]:
    run.watch(lines.fd)
    try:
        run.start()
        while run.is_running:
            run.step(1.0)
            yield from _decoded(run, lines)
        yield from _decoded(run, lines)
    except BaseException:
        if run.is_ours:
            _drain(run, lines)
        raise
    return run.finish()


def _decoded(run: Run, lines: _Lines) -> Iterator[Result]:
    for line in lines.take():
        yield decode(line)
        run.require_ours()


def _drain(run: Run, lines: _Lines) -> None:
    """End a run whose results nobody wants any more."""
    try:
        run.stop()
        while run.is_running:
            run.step(0.1)
            lines.take()
    except BaseException:
        run.abandon()
        raise
    run.finish()


class _Lines:
    """Whole lines from a non-blocking fd."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._rest = b""

    def take(self) -> list[bytes]:
        """Return the lines that have arrived."""
        while True:
            try:
                data = os.read(self.fd, _READ_BYTES)
            except BlockingIOError:
                break
            if not data:
                break
            self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        return lines
