"""RKNN: Rockchip's compiler says which layer runs where, its simulator computes what the NPU would.

The compiler tells it in the log alone, as a table of the layers that it made of the model: fused,
split and renamed, so that they, and not the file's nodes, are what is placed.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from edgert.coverage.adapter import Answer, Facts, Work
from edgert.coverage.adapters.rknn_log import fault_of, is_refusal, layers
from edgert.coverage.placement import placement_of
from edgert.coverage.values import Value, Values, load

_CHIPS = (
    "rk2118", "rk3562", "rk3566", "rk3568", "rk3576", "rk3588",
    "rv1103", "rv1103b", "rv1106", "rv1106b", "rv1126b",
)  # fmt: skip
_PLANES = 4  # dimensions of an input whose layout is to be said


class RknnAdapter:
    """One chip of Rockchip's.

    Args:
        device: As the toolkit names it: ``rk3588``.
        options: None are known.
    """

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._device = device
        self._options = options

    def facts(self) -> Facts:
        """Say whether the toolkit compiles for this chip; models are computed in f16."""
        reason = mend = ""
        if self._device not in _CHIPS:
            reason = f"the toolkit knows no chip '{self._device}'"
            mend = f"It knows: {', '.join(_CHIPS)}"
        elif self._options:
            reason = f"it has no option {', '.join(self._options)}"
        return Facts(
            evidence="unavailable" if reason else "vendor-emulator",
            versions={"rknn-toolkit2": importlib.metadata.version("rknn-toolkit2")},
            formats=("onnx",),
            computes=not reason,
            precision="f16",
            reason=reason,
            mend=mend,
        )

    def ask(self, work: Work) -> tuple[Answer, Values]:
        """Compile a model, read where its layers went, and simulate it."""
        try:
            return self._ask(work)
        except ValueError as error:
            fault = fault_of(str(error))
            if is_refusal(fault):
                return Answer(placement="rejected", unsupported=True, reason=fault), {}
            raise RuntimeError(fault) from error

    def _ask(self, work: Work) -> tuple[Answer, Values]:
        with _folder_of_its_own() as log, _toolkit() as toolkit:
            self._compile(toolkit, work.path)
            nodes = layers(log.read_text(errors="replace"))
            answer = Answer(placement=placement_of(nodes), nodes=nodes, own_nodes=True)
            return answer, _simulate(toolkit, work) if work.inputs else {}

    def _compile(self, toolkit: Any, path: str) -> None:
        _check(toolkit.config(target_platform=self._device), "config")
        _check(toolkit.load_onnx(path), "load_onnx")
        _check(toolkit.build(do_quantization=False), "build")


def _simulate(toolkit: Any, work: Work) -> dict[str, Value]:
    _check(toolkit.init_runtime(), "init_runtime")
    graph = onnx.load(work.path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = load(Path(work.inputs))
    arrays = [inputs[value.name] for value in graph.input if value.name not in weights]
    # Only images have a layout to be told: without one they are taken for NHWC.
    layouts = ["nchw"] * len(arrays) if any(np.ndim(each) == _PLANES for each in arrays) else None  # type: ignore[arg-type]
    found = toolkit.inference(inputs=arrays, data_format=layouts)
    if found is None:
        raise RuntimeError("the simulator gave no outputs")
    return dict(zip([value.name for value in graph.output], found, strict=True))


def _check(status: int, step: str) -> None:
    if status != 0:
        msg = f"{step} ended with {status}"
        raise RuntimeError(msg)


@contextlib.contextmanager
def _toolkit() -> Iterator[Any]:
    # Not at the top: it brings torch, and the facts need none of it.
    from rknn.api import RKNN

    made = RKNN(verbose=True)
    try:
        yield made
    finally:
        made.release()


@contextlib.contextmanager
def _folder_of_its_own() -> Iterator[Path]:
    """Stand in a folder that goes away, with all that is printed in a file of it.

    The toolkit leaves models where it is started, and its compiler prints past Python.
    """
    before = Path.cwd()
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryDirectory(prefix="edgert-rknn-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(folder)
        try:
            yield log
        finally:
            os.chdir(before)
            for number, was in enumerate(kept, 1):
                os.dup2(was, number)
                os.close(was)
