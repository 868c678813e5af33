"""Small ONNX models, and what is needed to run one without a pipeline."""

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edgert.backends.base import CompileRequest, Session, Signature
from edgert.backends.registry import backend
from edgert.tensor import DTYPES, TensorSpec

Shape = Sequence[int | str]
SUFFIX = ".onnx"
# Backends that read another format, and who makes the same models in it.
OTHER_MAKERS = {"tflite": "tests.tflite_models"}
NEEDS = {"tflite": "ai_edge_litert"}  # tflite-runtime has no schema to make them by
# Backends whose API leaves one copy of every input and of every output.
COPYING = ("tflite",)
ELEMENTS = {
    name: helper.np_dtype_to_tensor_dtype(np.dtype(theirs)) for name, theirs in DTYPES.items()
}


def value(name: str, shape: Shape, dtype: str = "f32") -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, ELEMENTS[dtype], shape)


def save(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Mapping[str, Any] | None = None,
) -> Path:
    constants = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "tiny", list(inputs), list(outputs), constants)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


def doubling(path: Path, shape: Shape = (2, 3), dtype: str = "f32") -> Path:
    """Y = 2 * x."""
    node = helper.make_node("Add", ["x", "x"], ["y"])
    return save(path, [node], [value("x", shape, dtype)], [value("y", shape, dtype)])


def shifting(path: Path, factor: float, offset: float, shape: Shape = (2, 3)) -> Path:
    """Y = factor * x + offset."""
    nodes = [
        helper.make_node("Mul", ["x", "factor"], ["scaled"]),
        helper.make_node("Add", ["scaled", "offset"], ["y"]),
    ]
    weights = {"factor": np.array(factor, np.float32), "offset": np.array(offset, np.float32)}
    return save(path, nodes, [value("x", shape)], [value("y", shape)], weights)


def tripling(path: Path, shape: Shape = (2, 3), dtype: str = "f32") -> Path:
    """Y = x + x + x."""
    nodes = [helper.make_node("Sum", ["x", "x", "x"], ["y"])]
    return save(path, nodes, [value("x", shape, dtype)], [value("y", shape, dtype)])


def two_in_two_out(path: Path) -> Path:
    """Total = a + b (f32 [4]), half = b / 2 (f32 [4]); the inputs come in the order b, a."""
    nodes = [
        helper.make_node("Add", ["a", "b"], ["total"]),
        helper.make_node("Mul", ["b", "factor"], ["half"]),
    ]
    return save(
        path,
        nodes,
        [value("b", [4]), value("a", [4])],
        [value("total", [4]), value("half", [4])],
        {"factor": np.array(0.5, np.float32)},
    )


def blending(path: Path) -> Path:
    """Y = a - b where the sum of b is more than 0, by a branch that reads both from outside.

    All f32 [1, 1, 2, 2]; the inputs come in the order b, a.
    """
    shape = [1, 1, 2, 2]
    result = value("branch", shape)
    less = helper.make_node("Sub", ["a", "b"], ["branch"])
    more = helper.make_node("Add", ["a", "b"], ["branch"])
    branches = {
        "then_branch": helper.make_graph([less], "then", [], [result]),
        "else_branch": helper.make_graph([more], "else", [], [result]),
    }
    nodes = [
        helper.make_node("ReduceSum", ["b"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["is_more"]),
        helper.make_node("If", ["is_more"], ["y"], **branches),
    ]
    inputs = [value("b", shape), value("a", shape)]
    return save(path, nodes, inputs, [value("y", shape)], {"zero": np.array(0, np.float32)})


def convolution(path: Path, shape: Shape) -> Path:
    """Y = a 3x3 convolution to 4 channels, flattened by a shape that the graph computes."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Shape", ["c"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "first"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["flat"], axis=0),
        helper.make_node("Reshape", ["c", "flat"], ["y"]),
    ]
    weights = np.linspace(-1, 1, 108, dtype=np.float32).reshape(4, 3, 3, 3)
    constants = {"w": weights, "first": np.array([0]), "rest": np.array([-1])}
    return save(path, nodes, [value("x", shape)], [value("y", ["batch", "places"])], constants)


def brightness(path: Path) -> Path:
    """Y [1, 1, h, w], the mean of the channels at each pixel of x [1, 3, h, w]."""
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    weights = {"w": np.full((1, 3, 1, 1), 1 / 3, np.float32)}
    inputs, outputs = [value("x", [1, 3, "h", "w"])], [value("y", [1, 1, "h", "w"])]
    return save(path, [node], inputs, outputs, weights)


def reshaped(path: Path) -> Path:
    """Y [1, 4, all the rest] of x [n, 4, 2, 2]: a batch becomes one long item, as in YOLOX."""
    node = helper.make_node("Reshape", ["x", "to"], ["y"])
    to = {"to": np.array([1, 4, -1])}
    return save(path, [node], [value("x", ["n", 4, 2, 2])], [value("y", [1, 4, "rest"])], to)


def mixing(path: Path) -> Path:
    """Y = x minus the mean of the whole batch, [n, 4]: right in its shapes alone."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=0),
        helper.make_node("Sub", ["x", "mean"], ["y"]),
    ]
    return save(path, nodes, [value("x", ["n", 4])], [value("y", ["n", 4])])


def places_of_ones(path: Path) -> Path:
    """Y i64 [1, as many as x has elements that are not zero], x f32 [6]."""
    node = helper.make_node("NonZero", ["x"], ["y"])
    return save(path, [node], [value("x", [6])], [value("y", [1, "found"], "i64")])


def fails_on_demand(path: Path) -> Path:
    """Y = x [2, 3] in the shape ``to``: an inference with a wrong one fails."""
    nodes = [
        helper.make_node("Reshape", ["x", "to"], ["r"]),
        helper.make_node("Relu", ["r"], ["flat"]),
        helper.make_node("ReduceSum", ["flat"], ["y"], keepdims=0),
    ]
    return save(path, nodes, [value("x", [2, 3]), value("to", [2], "i64")], [value("y", [])])


def matrix(path: Path) -> Path:
    """Y [2, 5] = x [2, 4] @ w [4, 5]: 20 parameters, 40 multiply-accumulates."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    w = np.ones((4, 5), np.float32)
    return save(path, [node], [value("x", [2, 4])], [value("y", [2, 5])], {"w": w})


def strings(path: Path) -> Path:
    """A model of an element type that no slot carries."""
    node = helper.make_node("Identity", ["x"], ["y"])
    text = [helper.make_tensor_value_info(name, TensorProto.STRING, [2]) for name in ("x", "y")]
    return save(path, [node], text[:1], text[1:])


def of(name: str) -> Any:
    """Return the module that makes these models in a format that a backend reads."""
    return import_module(OTHER_MAKERS[name]) if name in OTHER_MAKERS else sys.modules[__name__]


def file(name: str, folder: Path, stem: str = "m") -> Path:
    """Name a file for a model of a backend."""
    suffix: str = of(name).SUFFIX
    return folder / f"{stem}{suffix}"


def moved(name: str, model: Session | Signature, inferences: int = 1) -> int:
    """Say how many bytes a backend has to move: none, or each input and output once."""
    specs = (*model.inputs.values(), *model.outputs.values())
    return inferences * sum(spec.nbytes for spec in specs) if name in COPYING else 0


def arrays_for(specs: Mapping[str, TensorSpec]) -> dict[str, np.ndarray]:
    """Zeros for every tensor whose shape is known."""
    return {
        name: np.zeros(spec.shape, DTYPES[spec.dtype])
        for name, spec in specs.items()
        if spec.is_static
    }


@contextmanager
def session_of(name: str, path: Path, **asked: Any) -> Iterator[Session]:
    """Open a session on the first device of a backend, and close it at the end."""
    found = backend(name)
    device = "NPU" if name == "emulated" else "CPU"
    session = found.compile(CompileRequest(str(path), asked.pop("device", device), **asked))
    try:
        yield session
    finally:
        session.close()


def infer(session: Session, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
    """Run one inference and wait for its end.

    Raises:
        BaseException: What ``done`` was called with.
    """
    ended = threading.Event()
    errors: list[BaseException | None] = []

    def done(error: BaseException | None) -> None:
        errors.append(error)
        ended.set()

    session.start(inputs, outputs, done)
    assert ended.wait(30)
    if errors[0] is not None:
        raise errors[0]
