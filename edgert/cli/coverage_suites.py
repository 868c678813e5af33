"""What ``edgert coverage`` asks about: the cases of a suite of operators, or whole models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from edgert.cli.progress import StatusLine
from edgert.coverage.adapters.registry import spec_of
from edgert.coverage.protocol import Spec
from edgert.coverage.record import Report
from edgert.coverage.run import CaseRun, run_cases
from edgert.coverage.run_models import ModelRun, run_models
from edgert.coverage.suites.models import models_in
from edgert.coverage.suites.operators import Suite, cases_of
from edgert.errors import UserError
from edgert.models.cache import Cache
from edgert.models.catalog import load_catalog
from edgert.models.locate import Located, Locator

# Format -> who may give the reference, in f32; of TFLite its own kernels, which are its definition.
REFERENCES = {
    "onnx": ("onnxruntime:CPU", "openvino:CPU"),
    "tflite": ("tflite:CPU",),
    "openvino-ir": ("openvino:CPU",),
    "tensorflow": ("openvino:CPU",),
    "saved-model": ("openvino:CPU",),
    "paddle": ("openvino:CPU",),
}


def cover_cases(  # noqa: PLR0913  what a run of a suite is made of
    device: str,
    spec: Spec,
    suite: Suite,
    forms: Sequence[str],
    only: str,
    line: StatusLine,
    *,
    jobs: int,
    timeout_s: float,
    fresh: bool,
) -> Report:
    """Ask a device about single operators: the node cases of the onnx package, or TFLite's."""
    line.show(f"suite {suite}: making the cases")
    cases = cases_of(suite, forms, only)
    return run_cases(
        CaseRun(
            device=device,
            spec=spec,
            items=cases.items,
            versions=cases.versions,
            jobs=jobs,
            timeout_s=timeout_s,
            fresh=fresh,
        ),
        _ticker(line, device),
    )


def cover_models(  # noqa: PLR0913  what a run over models is made of
    device: str,
    spec: Spec,
    models: tuple[str, ...],
    folder: Path | None,
    shapes: dict[str, list[int]],
    line: StatusLine,
    *,
    timeout_s: float,
) -> Report:
    """Ask a device about whole models: those given, of a directory, or of the catalog."""
    locator = Locator(load_catalog(), Cache(), Path.cwd())
    if models:
        found = [_locate(locator, model, line) for model in models]
    elif folder is not None:
        found = [_locate(locator, model, line) for model in models_in(folder)]
    else:
        found = _here(locator)
    references = {
        kind: [(name, spec_of(name, {}, spec.memory_bytes)) for name in names]
        for kind, names in REFERENCES.items()
    }
    return run_models(
        ModelRun(
            device=device,
            spec=spec,
            references=references,
            models=found,
            shapes=shapes,
            timeout_s=timeout_s,
        ),
        lambda name: line.show(f"{device}: {name}"),
    )


def _locate(locator: Locator, model: str, line: StatusLine) -> Located | UserError:
    try:
        return locator.locate(model, lambda *_: line.show(f"{model}: pulling"))
    except UserError as error:
        return error


def _here(locator: Locator) -> list[Located | UserError]:
    """Return the models of the catalog that have been pulled.

    Raises:
        UserError: There is none.
    """
    found: list[Located | UserError] = []
    for name in locator.catalog.models:
        located = locator.locate(name, None)
        if located.path is not None:
            found.append(located)
    if not found:
        mend = "Pull some: edgert models pull NAME; or name a directory by --models"
        raise UserError("--suite models", "no model of the catalog is here", mend)
    return found


def _ticker(line: StatusLine, device: str) -> Callable[[int, int], None]:
    def tick(done: int, total: int) -> None:
        line.show(f"{device}: {done} of {total} cases")

    return tick
