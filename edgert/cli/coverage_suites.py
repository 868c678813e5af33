"""What ``edgert coverage`` asks about: the node cases of onnx, or whole models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from edgert import isolate
from edgert.cli.progress import StatusLine
from edgert.coverage.adapters.registry import spec_of
from edgert.coverage.protocol import Spec
from edgert.coverage.record import Report
from edgert.coverage.run import CaseRun, run_cases
from edgert.coverage.run_models import ModelRun, run_models
from edgert.coverage.suites.item import Item
from edgert.coverage.suites.models import models_in
from edgert.coverage.suites.onnx_cases import read_index
from edgert.errors import UserError
from edgert.models.cache import Cache, cache_root
from edgert.models.catalog import load_catalog
from edgert.models.locate import Located, Locator

_PREPARE_WITHIN_S = 600.0
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
    forms: list[str],
    only: str,
    line: StatusLine,
    *,
    jobs: int,
    timeout_s: float,
    fresh: bool,
) -> Report:
    """Ask a device about the node cases of the onnx package."""
    line.show("suite onnx: making the cases")
    items, versions = _onnx_items(forms, only)
    return run_cases(
        CaseRun(
            device=device,
            spec=spec,
            items=items,
            versions=versions,
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


def _onnx_items(forms: list[str], only: str) -> tuple[list[Item], dict[str, str]]:
    """Return the cases of the onnx package in some forms, and its version."""
    found = isolate.call(
        "edgert.coverage.suites.onnx_cases:prepare",
        {"folder": str(cache_root() / "coverage"), "forms": forms},
        _PREPARE_WITHIN_S,
        "suite onnx",
    )
    items = [item for form in forms for item in read_index(found[form])]
    known = {item.operator for item in items}
    wanted = {name.strip() for name in only.split(",") if name.strip()} or known
    if unknown := sorted(wanted - known):
        fault = f"the suite has no operator {', '.join(unknown)}"
        raise UserError("--only", fault, "Names as in ONNX: Conv, Gemm, ai.onnx.ml::Scaler")
    return [item for item in items if item.operator in wanted], {"onnx": found["onnx"]}


def _ticker(line: StatusLine, device: str) -> Callable[[int, int], None]:
    def tick(done: int, total: int) -> None:
        line.show(f"{device}: {done} of {total} cases")

    return tick
