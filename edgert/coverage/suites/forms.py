"""The forms in which a case is put to a device: many take an operator in one form and not another.

    published     as ONNX publishes it: every tensor is an input
    frozen        all inputs but the first are initializers, as weights are in real models
    int8-qdq      quantise and dequantise around it, parameters in int8: what an int8 NPU fuses
    static-batch  an open batch dimension made 1
    rank-4        every tensor padded to four dimensions, where that changes nothing else

Each form proves itself: where the values change, ONNX's reference evaluator says what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from edgert.coverage.compare import compare
from edgert.coverage.record import Form
from edgert.coverage.suites.quantise import quantised
from edgert.coverage.values import Value, Values

_RANK = 4
_OLDEST_IR = 4  # before it, initializers had to be inputs too
TYPES = {"float32": "f32", "float16": "f16", "float64": "f64", "bfloat16": "bf16", "bool": "bool"}


class Put(msgspec.Struct, frozen=True):
    """A case in one form; without a model the form does not apply, and ``reason`` says why."""

    model: Any
    inputs: dict[str, Value]
    outputs: dict[str, Value]
    dtype: str
    reason: str = ""
    rtol: float = 0.0
    atol: float = 0.0


def put(model: Any, inputs: Sequence[Any], outputs: Sequence[Any], form: Form) -> Put:
    """Return a case in a form.

    Args:
        model: The ``onnx.ModelProto``.
        inputs: Values of its inputs, in order.
        outputs: Values of its outputs, in order.
        form: One of ``FORMS``.
    """
    given = _named(model.graph.input, inputs)
    wanted = _named(model.graph.output, outputs)
    case = Put(model, given, wanted, _first_dtype(given))
    return FORMS[form](case)


def _published(case: Put) -> Put:
    return case


def _frozen(case: Put) -> Put:
    """Make initializers of all tensors but the first."""
    from onnx import ModelProto, numpy_helper

    tensors = [name for name, value in case.inputs.items() if isinstance(value, np.ndarray)]
    model = ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = max(model.ir_version, _OLDEST_IR)
    kept = {name: value for name, value in case.inputs.items() if name not in tensors[1:]}
    for name in tensors[1:]:
        try:
            array = np.asarray(case.inputs[name])
            model.graph.initializer.append(numpy_helper.from_array(array, name))
        except (TypeError, ValueError, NotImplementedError) as error:
            return _without(case, f"input '{name}' cannot be an initializer: {error}")
    _keep_inputs(model, set(kept))
    return msgspec.structs.replace(case, model=model, inputs=kept)


def _static_batch(case: Put) -> Put:
    """Make an open first dimension of the inputs what it is in the case's own values."""
    from onnx import ModelProto

    model = ModelProto()
    model.CopyFrom(case.model)
    is_open = False
    for value in model.graph.input:
        given = case.inputs[value.name]
        sizes = value.type.tensor_type.shape.dim
        if sizes and isinstance(given, np.ndarray) and not sizes[0].HasField("dim_value"):
            is_open = True
            sizes[0].dim_value = given.shape[0]
    if not is_open:
        return _without(case, "it is static as published")
    return msgspec.structs.replace(case, model=model)


def _rank_4(case: Put) -> Put:
    """Pad every tensor to four dimensions, if the reference evaluator says the same then."""
    from onnx import ModelProto

    values = [*case.inputs.values(), *case.outputs.values()]
    if not all(isinstance(value, np.ndarray) for value in values):
        return _without(case, "not every value is a tensor")
    if all(value.ndim >= _RANK for value in values if isinstance(value, np.ndarray)):
        return _without(case, "every tensor has four dimensions or more as published")
    model = ModelProto()
    model.CopyFrom(case.model)
    for value in (*model.graph.input, *model.graph.output):
        sizes = value.type.tensor_type.shape.dim
        known = [msize.dim_value for msize in sizes]
        del sizes[:]
        for size in [1] * (_RANK - len(known)) + known:
            sizes.add().dim_value = size
    del model.graph.value_info[:]
    inputs, outputs = _padded(case.inputs), _padded(case.outputs)
    said = reference(model, inputs)
    if isinstance(said, str) or compare(outputs, said).reason:
        return _without(case, "the operator means something else with four dimensions")
    return msgspec.structs.replace(case, model=model, inputs=inputs, outputs=outputs)


def _int8_qdq(case: Put) -> Put:
    """Quantise around the operator; the reference is the quantised graph by the evaluator."""
    frozen = _frozen(case)
    if frozen.model is None:
        return frozen
    try:
        model, step = quantised(frozen.model, frozen.inputs, frozen.outputs)
    except ValueError as error:
        return _without(case, str(error))
    said = reference(model, frozen.inputs)
    if isinstance(said, str):
        return _without(case, f"the reference evaluator cannot run it: {said}")
    # A value on the edge between two levels may fall to either side.
    return Put(model, frozen.inputs, said, "i8", atol=1.01 * step)


FORMS: dict[Form, Callable[[Put], Put]] = {
    "published": _published,
    "frozen": _frozen,
    "int8-qdq": _int8_qdq,
    "static-batch": _static_batch,
    "rank-4": _rank_4,
}


def reference(model: Any, inputs: Values) -> dict[str, Value] | str:
    """Run a model by ONNX's reference evaluator; where that fails, return what it said."""
    from edgert.coverage.suites.evaluator import evaluate

    try:
        outputs = evaluate(model, dict(inputs))
    except Exception as error:  # noqa: BLE001  it raises whatever numpy raises; said, not hidden
        return f"{type(error).__name__}: {error}".splitlines()[0]
    names = (value.name for value in model.graph.output)
    return {name: _plain(value) for name, value in zip(names, outputs, strict=True)}


def _without(case: Put, reason: str) -> Put:
    return Put(None, {}, {}, case.dtype, reason)


def _named(declared: Sequence[Any], given: Sequence[Any]) -> dict[str, Value]:
    """Return values by name; of optional inputs in the middle the package gives no value."""
    names = [value.name for value in declared]
    return {name: _plain(value) for name, value in zip(names, given, strict=False)}


def _plain(value: Any) -> Value:
    from onnx import TensorProto, numpy_helper

    if value is None:
        return None
    if isinstance(value, list):
        return [np.asarray(_plain(one)) for one in value]
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value)


def _first_dtype(values: Values) -> str:
    for value in values.values():
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, np.ndarray):
            name = "text" if first.dtype.kind in "OUS" else first.dtype.name
            return TYPES.get(name, name.replace("uint", "u").replace("int", "i"))
    return "none"


def _keep_inputs(model: Any, names: set[str]) -> None:
    for value in [value for value in model.graph.input if value.name not in names]:
        model.graph.input.remove(value)


def _padded(given: Values) -> dict[str, Value]:
    return {
        name: value.reshape((1,) * (_RANK - value.ndim) + value.shape)
        for name, value in given.items()
        if isinstance(value, np.ndarray)
    }
