"""What a model is made of, counted by hand for small ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edgert.errors import ModelError
from edgert.models.cache import Cache
from edgert.models.inspect import ModelReport, inspect
from edgert.models.reader import Models
from edgert.tensor import TensorSpec

onnx = pytest.importorskip("onnx")
FLOAT = onnx.TensorProto.FLOAT
node = onnx.helper.make_node
Inspect = Callable[..., ModelReport]


def value(name: str, *shape: int | str):
    return onnx.helper.make_tensor_value_info(name, FLOAT, shape)


def weights(name: str, *shape: int):
    size = 1
    for one in shape:
        size *= one
    return onnx.helper.make_tensor(name, FLOAT, shape, [0.5] * size)


@pytest.fixture
def inspect_graph(tmp_path: Path) -> Inspect:
    def run(nodes: list, inputs: list, initializers: list, outputs: list, **shapes: list[int]):
        graph = onnx.helper.make_graph(nodes, "g", inputs, outputs, initializers)
        opset = [onnx.helper.make_opsetid("", 17)]
        model = onnx.helper.make_model(graph, opset_imports=opset, producer_name="us")
        onnx.save(model, tmp_path / "m.onnx")
        return inspect(locate(tmp_path / "m.onnx"), shapes)

    return run


def locate(path: Path):
    return Models(path.parent, cache=Cache(path.parent / "cache")).locate(path.name, pull=False)


def test_a_convolution_with_groups(inspect_graph: Inspect) -> None:
    conv = node("Conv", ["x", "w", "b"], ["y"], group=2, strides=[2, 2], pads=[1, 1, 1, 1])
    report = inspect_graph(
        [conv],
        [value("x", 1, 4, 8, 8)],
        [weights("w", 6, 2, 3, 3), weights("b", 6)],
        [value("y", 1, 6, 4, 4)],
    )
    assert report.macs == (4 * 4) * (6 * 2 * 3 * 3)
    assert report.parameters == 6 * 2 * 3 * 3 + 6
    assert report.operators == {"Conv": 1}
    assert report.inputs == {"x": TensorSpec("f32", (1, 4, 8, 8))}
    assert (report.opset, report.producer, report.notes) == ({"ai.onnx": 17}, "us", [])


def test_a_transposed_convolution(inspect_graph: Inspect) -> None:
    up = node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])
    report = inspect_graph(
        [up], [value("x", 1, 4, 5, 5)], [weights("w", 4, 3, 2, 2)], [value("y", 1, 3, 10, 10)]
    )
    assert report.macs == (5 * 5) * (4 * 3 * 2 * 2)


@pytest.mark.parametrize(("is_transposed", "shape"), [(0, (2, 3)), (1, (3, 2))])
def test_gemm(inspect_graph: Inspect, is_transposed: int, shape: tuple[int, int]) -> None:
    gemm = node("Gemm", ["x", "w"], ["y"], transA=is_transposed)
    report = inspect_graph([gemm], [value("x", *shape)], [weights("w", 3, 5)], [value("y", 2, 5)])
    assert report.macs == 2 * 3 * 5


def test_matrix_products_in_a_batch(inspect_graph: Inspect) -> None:
    report = inspect_graph(
        [node("MatMul", ["x", "z"], ["y"])],
        [value("x", 7, 2, 3), value("z", 7, 3, 5)],
        [],
        [value("y", 7, 2, 5)],
    )
    assert report.macs == 7 * 2 * 3 * 5


def test_open_sizes_leave_macs_unknown_until_given(inspect_graph: Inspect) -> None:
    conv = [node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])]
    parts = ([value("x", "n", 3, "h", "w")], [weights("w", 4, 3, 3, 3)], [value("y", "n", 4, 0, 0)])
    report = inspect_graph(conv, *parts)
    assert report.macs is None
    assert report.notes == ["MACs are not known while sizes are open: x f32[?,3,?,?]; give --shape"]
    report = inspect_graph(conv, *parts, x=[1, 3, 16, 16])
    assert report.macs == 16 * 16 * 4 * 3 * 3 * 3
    assert report.outputs == {"y": TensorSpec("f32", (1, 4, 16, 16))}


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"z": [1]}, "has no input 'z'. Its inputs: x."),
        ({"w": [3]}, "has no input 'w'. Its inputs: x."),
        ({"x": [1, 3, 1]}, "input 'x' is f32[?,3], [1, 3, 1] does not fit"),
    ],
)
def test_shapes_that_do_not_fit(inspect_graph: Inspect, shapes: dict, said: str) -> None:
    with pytest.raises(ModelError) as caught:
        inspect_graph(
            [node("Add", ["x", "w"], ["y"])],
            [value("x", "n", 3), value("w", 3)],
            [weights("w", 3)],
            [value("y")],
            **shapes,
        )
    assert said in str(caught.value)


def test_declared_sizes_are_replaced_as_runtimes_do_it(inspect_graph: Inspect) -> None:
    conv = [node("Conv", ["x", "w"], ["y"])]
    parts = ([value("x", 1, 3, 8, 8)], [weights("w", 4, 3, 3, 3)], [value("y", 1, 4, 6, 6)])
    report = inspect_graph(conv, *parts, x=[1, 3, 16, 8])
    assert report.inputs == {"x": TensorSpec("f32", (1, 3, 16, 8))}
    assert report.outputs == {"y": TensorSpec("f32", (1, 4, 14, 6))}
    said = "the file declares 'x' as f32[1,3,8,8]: whether it takes other sizes, a runtime proves"
    assert report.notes == [said]
    product = [node("MatMul", ["x", "w"], ["y"])]
    parts = ([value("x", 2, 4)], [weights("w", 4, 5)], [value("y", 2, 5)])
    assert inspect_graph(product, *parts, x=[7, 4]).macs == 7 * 4 * 5
    with pytest.raises(ModelError, match=r"its shapes contradict one another: .*MatMul"):
        inspect_graph(product, *parts, x=[2, 3])


def test_what_is_not_counted_is_said(inspect_graph: Inspect) -> None:
    report = inspect_graph(
        [node("Einsum", ["x", "x"], ["y"], equation="ij,jk->ik")],
        [value("x", 3, 3)],
        [],
        [value("y", 3, 3)],
    )
    assert report.notes == ["the MACs of Einsum are not counted"]


def test_inner_graphs_are_counted_as_operators(inspect_graph: Inspect) -> None:
    branch = onnx.helper.make_graph(
        [node("MatMul", ["x", "x"], ["t"])], "b", [], [value("t", 3, 3)]
    )
    condition = onnx.helper.make_tensor("c", onnx.TensorProto.BOOL, [], [True])
    report = inspect_graph(
        [node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)],
        [value("x", 3, 3)],
        [condition],
        [value("y", 3, 3)],
    )
    assert report.operators == {"If": 1, "MatMul": 2}
    assert report.notes == ["the MACs inside If, Loop and Scan are not counted"]
    assert report.parameters == 0


@pytest.mark.parametrize("content", [b"\x08\x08" + b"\xff" * 50, b"\x08\x08\x12\x02us"])
def test_a_damaged_file_is_told(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(ModelError, match="is damaged"):
        inspect(locate(tmp_path / "m.onnx"), {})


def test_yolox_nano(yolox_onnx: Path, tmp_path: Path) -> None:
    models = Models(cache=Cache(tmp_path))
    report = inspect(models.locate(str(yolox_onnx), pull=False), {})
    assert report.macs == 522_553_408
    assert report.parameters == pytest.approx(0.91e6, rel=0.01)
    assert (report.catalog, report.licence) == ("yolox-nano", "Apache-2.0")
    assert report.operators["Conv"] == 113


def test_other_formats_are_read_by_the_backends(pulled_cache: Cache) -> None:
    pytest.importorskip("openvino")
    report = inspect(Models(cache=pulled_cache).locate("person-ssdlite", pull=False), {})
    assert report.inputs == {"image_tensor": TensorSpec("u8", (1, 300, 300, 3))}
    assert report.operators["Convolution"] == 55
    assert report.parameters
    assert report.macs


def test_declared_sizes_that_the_catalog_knows_to_be_open(pulled: Callable[[str], Path]) -> None:
    """CenterFace's file declares [10, 3, 32, 32]."""
    pulled("face-centerface")
    located = Models().locate("face-centerface", pull=False)
    assert inspect(located, {}).outputs["537"] == TensorSpec("f32", (1, 1, 120, 160))
    report = inspect(located, {"input.1": [1, 3, 64, 32]})
    assert report.outputs["540"] == TensorSpec("f32", (1, 10, 16, 8))
    assert report.macs
