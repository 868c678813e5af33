"""SavedModels of TensorFlow and Paddle models, written without their libraries.

Protocol buffers by hand, as few fields as OpenVINO reads; the numbers of the fields are those of
``tensorflow/core/protobuf/saved_model.proto`` and ``paddle/fluid/framework/framework.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

_TF_FLOAT = 1
_PADDLE_FLOAT, _PADDLE_TENSOR, _PADDLE_FEED, _PADDLE_FETCH = 5, 7, 9, 10
Value = int | str | bytes


def message(*fields: tuple[int, Value]) -> bytes:
    """Encode fields by number: whole numbers as such, all else by its length."""
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value % (1 << 64))
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low]) if not rest else bytes([low | 0x80]) + _varint(rest)


def doubling_saved_model(folder: Path) -> Path:
    """Y [n, 3] = x + x, as a SavedModel; n is open."""
    folder.mkdir()
    shape = message((2, message((1, -1))), (2, message((1, 3))))
    element = message((6, _TF_FLOAT))
    x = _node("Placeholder", "serving_x", {"dtype": element, "shape": message((7, shape))})
    y = _node("AddV2", "sum", {"T": element}, "serving_x", "serving_x")
    graph = message((1, x), (1, y), (4, message((1, 1087))))
    ports = [
        _entry(name, message((1, tensor), (2, _TF_FLOAT), (3, shape)))
        for name, tensor in (("x", "serving_x:0"), ("y", "sum:0"))
    ]
    signature = message((1, ports[0]), (2, ports[1]), (3, "tensorflow/serving/predict"))
    meta = message(
        (1, message((4, "serve"))), (2, graph), (5, _entry("serving_default", signature))
    )
    (folder / "saved_model.pb").write_bytes(message((1, 1), (2, meta)))
    return folder


def _node(kind: str, name: str, attributes: Mapping[str, bytes], *inputs: str) -> bytes:
    return message(
        (1, name),
        (2, kind),
        *((3, one) for one in inputs),
        *((5, _entry(key, value)) for key, value in attributes.items()),
    )


def _entry(key: str, value: bytes) -> bytes:
    return message((1, key), (2, value))


def weighing_paddle(path: Path, weights: tuple[float, ...] = (1, 2, 3)) -> Path:
    """Y [2, 3] = x * w, as a Paddle model: ``.pdmodel`` and ``.pdiparams``."""
    tensor = {name: message((1, _PADDLE_FLOAT), (2, 2), (2, 3)) for name in ("x", "y")}
    tensor["w"] = message((1, _PADDLE_FLOAT), (2, len(weights)))
    variables = [
        _variable(name, message((1, _PADDLE_TENSOR), (3, message((1, one)))), kept=name == "w")
        for name, one in tensor.items()
    ]
    variables += [
        _variable("feed", message((1, _PADDLE_FEED)), kept=True),
        _variable("fetch", message((1, _PADDLE_FETCH)), kept=True),
    ]
    column, axis = (message((1, name), (2, 0), (3, at)) for name, at in (("col", 0), ("axis", -1)))
    operators = [
        _operator("feed", {"X": "feed"}, "x", column),
        _operator("elementwise_mul", {"X": "x", "Y": "w"}, "y", axis),
        _operator("fetch", {"X": "y"}, "fetch", column),
    ]
    block = message(
        (1, 0), (2, -1), *((3, one) for one in variables), *((4, one) for one in operators)
    )
    path.write_bytes(message((1, block), (4, message((1, 2006000)))))
    values = np.array(weights, "<f4").tobytes()
    head = struct.pack("<IQIi", 0, 0, 0, len(tensor["w"]))
    path.with_suffix(".pdiparams").write_bytes(head + tensor["w"] + values)
    return path


def _variable(name: str, kind: bytes, *, kept: bool) -> bytes:
    return message((1, name), (2, kind), (3, int(kept)))


def _operator(kind: str, inputs: Mapping[str, str], output: str, attribute: bytes) -> bytes:
    return message(
        *((1, message((1, role), (2, name))) for role, name in inputs.items()),
        (2, message((1, "Out"), (2, output))),
        (3, kind),
        (4, attribute),
    )
