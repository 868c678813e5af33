"""The node cases of the ``onnx`` package, written once to a folder as models with their values.

A case is one operator with its inputs and reference outputs, as ONNX publishes it. The package
makes them when asked, which takes seconds, so they are kept by its version. Run in a child: it
imports ``onnx``, which the calling process need not have loaded.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgert.coverage import values
from edgert.coverage.adapter import Work
from edgert.coverage.record import Form
from edgert.coverage.suites.forms import FORMS, Put, put
from edgert.coverage.suites.item import Item
from edgert.coverage.suites.kept import index_of, write_whole

REVISION = 1
"""Part of the folder's name: a change of what is written there makes a new one."""

_EXPANDED = re.compile(r"_expanded(_ver\d+|_function.*)?$")


def prepare(folder: str, forms: list[Form]) -> dict[str, str]:
    """Write the cases in the forms asked, where that has not been done.

    Args:
        folder: Where the suites of all versions live.
        forms: Forms to be written.

    Returns:
        Version of ``onnx``, and for each form the path of its index (a list of ``Item``).
    """
    import onnx

    top = Path(folder) / f"onnx-{onnx.__version__}-{REVISION}"
    missing = [form for form in forms if not index_of(top / form).exists()]
    if missing:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # divisions by zero are what some cases are about
            cases = list(_cases())
        for form in missing:
            _write(cases, form, top / form)
    found = {"onnx": onnx.__version__}
    found.update((form, str(index_of(top / form))) for form in forms)
    return found


def _cases() -> Iterator[Any]:
    """Yield every node case of the package; it prints nothing and needs no network."""
    from onnx.backend.test.loader import load_model_tests

    with contextlib.redirect_stdout(None):
        yield from load_model_tests(kind="node")


def _write(cases: list[Any], form: Form, target: Path) -> None:
    operators = _operators(cases)
    write_whole(
        target,
        lambda made: [
            _write_case(case, operators[case.name], form, made, target) for case in cases
        ],
    )


def _write_case(case: Any, operator: str, form: Form, made: Path, target: Path) -> Item:
    inputs, outputs = case.data_sets[0]
    done = put(case.model, inputs, outputs, form)
    opset = max((each.version for each in case.model.opset_import if not each.domain), default=0)
    if done.model is None:
        work = Work(name=case.name, path="", format="onnx")
        return _item(case, work, operator, opset, form, done)
    (made / f"{case.name}.onnx").write_bytes(done.model.SerializeToString())
    values.save(made / f"{case.name}.in.npz", done.inputs)
    values.save(made / f"{case.name}.out.npz", done.outputs)
    stem = os.fspath(target / case.name)
    work = Work(name=case.name, path=f"{stem}.onnx", format="onnx", inputs=f"{stem}.in.npz")
    return _item(case, work, operator, opset, form, done, f"{stem}.out.npz")


def _item(
    case: Any, work: Work, operator: str, opset: int, form: Form, done: Put, expected: str = ""
) -> Item:
    return Item(
        work=work,
        operator=operator,
        opset=opset,
        dtype=done.dtype,
        form=form,
        expected=expected,
        rtol=max(case.rtol, done.rtol),
        atol=max(case.atol, done.atol),
        reason=done.reason,
    )


def _operators(cases: list[Any]) -> dict[str, str]:
    """Return each case's operator: a case of an operator's expansion is one of that operator."""
    first = {case.name: _operator(case.model) for case in cases}
    return {name: first.get(_EXPANDED.sub("", name), operator) for name, operator in first.items()}


def _operator(model: Any) -> str:
    node = model.graph.node[-1] if model.graph.node else None
    if node is None:
        return "none"
    return f"{node.domain}::{node.op_type}" if node.domain else str(node.op_type)


ALL_FORMS = tuple(FORMS)
