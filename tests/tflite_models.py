"""The small models of ``tests.models`` once more, as TFLite files: no converter is needed."""

from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgert.coverage.suites.tflite.file import Graph, Model, Shape

SUFFIX = ".tflite"


def doubling(path: Path, shape: Shape = (2, 3), dtype: str = "f32") -> Path:
    """Y = 2 * x; of types that TFLite cannot add, by way of f32."""
    model = Model()
    g = model.graph
    scale = 1.0 if dtype in ("u8", "i8") else 0
    x = g.input("x", shape, dtype, scale)
    y = g.tensor(shape, dtype, "y", scale)
    if dtype in ("f16", "f64"):
        floats = g.add("CAST", [x], g.tensor(shape), schema.CastOptionsT())
        total = g.add("ADD", [floats, floats], g.tensor(shape), schema.AddOptionsT())
        g.output(g.add("CAST", [total], y, schema.CastOptionsT()))
    else:
        g.output(g.add("ADD", [x, x], y, schema.AddOptionsT()))
    return model.save(path)


def two_in_two_out(path: Path) -> Path:
    """Total = a + b (f32 [4]), half = b / 2 (f32 [4]); the inputs come in the order b, a."""
    model = Model()
    g = model.graph
    b, a = g.input("b", [4]), g.input("a", [4])
    g.output(g.add("ADD", [a, b], g.tensor([4], name="total"), schema.AddOptionsT()))
    factor = g.constant(np.float32(0.5))
    g.output(g.add("MUL", [b, factor], g.tensor([4], name="half"), schema.MulOptionsT()))
    return model.save(path)


def blending(path: Path) -> Path:
    """Y = a - b where the sum of b is more than 0, by a branch; see ``tests.models``."""
    shape = [1, 1, 2, 2]
    model = Model()
    g = model.graph
    b, a = g.input("b", shape), g.input("a", shape)
    axes = g.constant(np.array([0, 1, 2, 3], np.int32))
    total = g.add("SUM", [b, axes], g.tensor([]), schema.ReducerOptionsT())
    zero = g.constant(np.float32(0))
    is_more = g.add("GREATER", [total, zero], g.tensor([], "bool"), schema.GreaterOptionsT())
    choice = schema.IfOptionsT()
    for code, options in (("SUB", schema.SubOptionsT()), ("ADD", schema.AddOptionsT())):
        branch = Graph(model)
        own_a, own_b = branch.input("a", shape), branch.input("b", shape)
        branch.output(branch.add(code, [own_a, own_b], branch.tensor(shape), options))
    choice.thenSubgraphIndex, choice.elseSubgraphIndex = 1, 2
    g.output(g.add("IF", [is_more, a, b], g.tensor(shape, name="y"), choice))
    return model.save(path)


def convolution(path: Path, shape: Shape) -> Path:
    """Y = a 3x3 convolution to 4 channels of NCHW, flattened."""
    model = Model()
    g = model.graph
    n, c, h, w = shape
    x = g.input("x", shape)
    last = g.constant(np.array([0, 2, 3, 1], np.int32))
    first = g.constant(np.array([0, 3, 1, 2], np.int32))
    weights = np.linspace(-1, 1, 108, dtype=np.float32).reshape(4, 3, 3, 3)
    turned = g.add("TRANSPOSE", [x, last], g.tensor([n, h, w, c]), schema.TransposeOptionsT())
    convolved = schema.Conv2DOptionsT()
    convolved.strideH = convolved.strideW = 1
    kernel = g.constant(np.ascontiguousarray(weights.transpose(0, 2, 3, 1)))
    bias = g.constant(np.zeros(4, np.float32))
    result = g.add("CONV_2D", [turned, kernel, bias], g.tensor([n, h, w, 4]), convolved)
    back = g.add("TRANSPOSE", [result, first], g.tensor([n, 4, h, w]), schema.TransposeOptionsT())
    flat = g.constant(np.array([1, -1], np.int32))
    y = g.tensor(["batch", "places"], name="y")
    g.output(g.add("RESHAPE", [back, flat], y, schema.ReshapeOptionsT()))
    return model.save(path)


def places_of_ones(path: Path) -> Path:
    """Y i64 [1, as many as x has elements that are not zero], x f32 [6]."""
    model = Model()
    g = model.graph
    x = g.input("x", [6])
    zero = g.constant(np.float32(0))
    is_one = g.add("NOT_EQUAL", [x, zero], g.tensor([6], "bool"), schema.NotEqualOptionsT())
    where = g.add("WHERE", [is_one], g.tensor(["found", 1], "i64"), schema.WhereOptionsT())
    row = g.constant(np.array([1, -1], np.int32))
    y = g.tensor([1, "found"], "i64", "y")
    g.output(g.add("RESHAPE", [where, row], y, schema.ReshapeOptionsT()))
    return model.save(path)


def fails_on_demand(path: Path) -> Path:
    """Y = the sum of x [2, 3] in the shape ``to``: an inference with a wrong one fails."""
    model = Model()
    g = model.graph
    x, to = g.input("x", [2, 3]), g.input("to", [2], "i64")
    wanted = g.add("CAST", [to], g.tensor([2], "i32"), schema.CastOptionsT())
    r = g.add("RESHAPE", [x, wanted], g.tensor(["a", "b"]), schema.ReshapeOptionsT())
    axes = g.constant(np.array([0, 1], np.int32))
    y = g.tensor([], name="y")
    g.output(g.add("SUM", [r, axes], y, schema.ReducerOptionsT()))
    return model.save(path)


def strings(path: Path) -> Path:
    """A model of an element type that no slot carries."""
    model = Model()
    model.graph.output(model.graph.input("x", [2], "string"))
    return model.save(path)


def foreign(path: Path) -> Path:
    """Y = an operator that only some delegate knows, of x f32 [2]."""
    model = Model()
    g = model.graph
    g.output(g.add("their-custom-op", [g.input("x", [2])], g.tensor([2], name="y")))
    return model.save(path)


def chain(path: Path, metadata: str = "") -> Path:
    """Y = 2 * x * (2 * x), x f32 [4]: an ADD and a MUL."""
    model = Model()
    if metadata:
        model.note(metadata, b"fp16")
    g = model.graph
    x = g.input("x", [4])
    double = g.add("ADD", [x, x], g.tensor([4]), schema.AddOptionsT())
    y = g.tensor([4], name="y")
    g.output(g.add("MUL", [double, double], y, schema.MulOptionsT()))
    return model.save(path)
