"""Batches of ``infer``: what is refused, what is compiled, and that each frame gets its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from edgert.backends.base import Session
from edgert.errors import DeviceError, FrameLostError, PipelineError
from edgert.models.reader import Models
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext
from edgert.stages.batch_plan import BatchOptions, BatchPlan, plan_batches
from edgert.stages.batch_proof import is_same
from edgert.stages.batch_session import BatchSession
from edgert.stages.harness import opened
from edgert.stages.infer import Infer, InferOptions
from edgert.tensor import PortSpec, TensorSpec
from tests import models

CONVOLUTION = {"x": [1, 3, 8, 8]}
RUNTIMES = ["openvino:CPU", "onnxruntime:CPU"]


def context(folder: Path, **known: Any) -> PlanContext:
    return PlanContext("detector", "stage 'detector'", str(folder), Models(folder), {}, **known)


def tensors(**shapes: list[int]) -> dict[str, PortSpec]:
    specs = {name: TensorSpec("f32", tuple(shape)) for name, shape in shapes.items()}
    return {"tensor": PortSpec("tensors", specs)}


def running(folder: Path, shape: dict[str, list[int]], **settings: Any) -> Any:
    whole = {"model": "m.onnx", "shape": shape, **settings}
    return opened(Infer, whole, tensors(**shape), context(folder), threads=1)


def planned(folder: Path, shape: dict[str, list[int]], batch: dict[str, Any]) -> PortSpec:
    options = read_as(InferOptions, {"model": "m.onnx", "shape": shape, "batch": batch})
    return Infer.plan(options, tensors(**shape), context(folder))["outputs"]


def noise(shape: list[int], count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.normal(size=shape).astype(np.float32) for _ in range(count)]


@pytest.mark.parametrize(
    ("batch", "sizes"),
    [
        ({"max_size": 8}, (1, 2, 4, 8)),
        ({"max_size": 6}, (1, 2, 4, 6)),
        ({"max_size": 8, "preferred_sizes": [4]}, (4, 8)),
        ({"max_size": 8, "preferred_sizes": [8, 1]}, (1, 8)),
    ],
)
def test_the_sizes_that_are_compiled_for(batch: dict[str, Any], sizes: tuple[int, ...]) -> None:
    assert read_as(BatchOptions, batch).sizes == sizes


def test_a_size_above_the_largest_is_refused() -> None:
    with pytest.raises(ValidationError, match="preferred size 9 is not between 1 and max_size 8"):
        read_as(BatchOptions, {"max_size": 8, "preferred_sizes": [9]})


@pytest.mark.parametrize(
    ("asked", "streams", "interval_ms", "delay_ms"),
    [
        (None, ("a", "b"), 40.0, 40.0),
        (None, ("a",), 40.0, 0.0),  # within one interval nothing else would come
        (None, ("a", "b"), 0.0, 0.0),
        (5.0, ("a",), 0.0, 5.0),
    ],
)
def test_how_long_a_batch_waits_by_default(
    asked: float | None, streams: tuple[str, ...], interval_ms: float, delay_ms: float
) -> None:
    known = context(Path(), streams=streams, frame_interval_ms=interval_ms)
    planned = plan_batches(BatchOptions(max_size=2, max_delay_ms=asked), known)
    assert planned == BatchPlan((1, 2), delay_ms)


def test_a_batch_of_one_is_none(tmp_path: Path) -> None:
    assert plan_batches(BatchOptions(max_size=1), context(tmp_path)) is None


def test_a_model_that_reshapes_to_nonsense_is_refused_by_the_plan(tmp_path: Path) -> None:
    models.reshaped(tmp_path / "m.onnx")
    with pytest.raises(PipelineError) as caught:
        planned(tmp_path, {"x": [1, 4, 2, 2]}, {"max_size": 4})
    assert str(caught.value) == (
        "stage 'detector', batch: model 'm.onnx' cannot be batched: with 4 frames its output 'y' "
        "is f32[1,4,16], not f32[4,4,4]. Export it with an open batch dimension, or remove 'batch'."
    )


def test_an_input_that_is_no_batch_is_refused_by_the_plan(tmp_path: Path) -> None:
    models.doubling(tmp_path / "m.onnx")
    with pytest.raises(PipelineError, match=r"its input 'x' is f32\[2,3\], whose first dimension"):
        planned(tmp_path, {"x": [2, 3]}, {"max_size": 4})


@pytest.mark.parametrize("device", RUNTIMES)
def test_a_model_that_mixes_its_frames_is_refused_when_it_is_opened(
    device: str, tmp_path: Path
) -> None:
    models.mixing(tmp_path / "m.onnx")
    with (
        pytest.raises(DeviceError, match="frame 0 gets another 'y' than alone: the model mixes"),
        running(tmp_path, {"x": [1, 4]}, device=device, batch={"max_size": 3}),
    ):
        pass


def batch_of(session: Session, frames: list[np.ndarray]) -> list[np.ndarray]:
    """Infer frames together, each output to an array of its own."""
    assert isinstance(session, BatchSession)
    spec = session.outputs["y"]
    targets = [{"y": np.full(spec.shape, np.nan, np.float32)} for _ in frames]
    errors: list[BaseException | None] = []
    pairs = [({"x": frame}, target) for frame, target in zip(frames, targets, strict=True)]
    session.start_batch(pairs, errors.append)
    session.close()
    assert errors == [None]
    return [target["y"] for target in targets]


@pytest.mark.parametrize("device", RUNTIMES)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_frame_of_a_batch_gets_its_own_result(device: str, count: int, tmp_path: Path) -> None:
    models.convolution(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    frames = noise(CONVOLUTION["x"], count)
    with running(tmp_path, CONVOLUTION, device=device) as run:
        alone = [run.feed({"tensor": {"x": f}})["outputs"].tensors["y"].copy() for f in frames]
    batch = {"max_size": 4, "preferred_sizes": [1, 4]}
    with running(tmp_path, CONVOLUTION, device=device, batch=batch) as run:
        session = run.stage._session  # noqa: SLF001  what the node drives through start_batch
        together = batch_of(session, frames)
        before = run.stage._warm_up_bytes  # noqa: SLF001
        moved = count * (frames[0].nbytes + together[0].nbytes) if count > 1 else 0
        assert session.copied_bytes - before == moved
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_frame_alone_goes_through_the_smallest_size(tmp_path: Path) -> None:
    models.convolution(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    batch = {"max_size": 4, "preferred_sizes": [2]}
    (x,) = noise(CONVOLUTION["x"], 1)
    with running(tmp_path, CONVOLUTION, device="openvino:CPU") as run:
        alone = run.feed({"tensor": {"x": x}})["outputs"].tensors["y"].copy()
    with running(tmp_path, CONVOLUTION, device="openvino:CPU", batch=batch) as run:
        padded = run.feed({"tensor": {"x": x}})["outputs"].tensors["y"].copy()
        assert run.stage.batching.max_size == 4
        assert list(run.stage.context.report["variants"]) == ["batch of 2", "batch of 4"]
    np.testing.assert_allclose(padded, alone, rtol=1e-5, atol=1e-5)


def test_a_frame_of_another_shape_is_lost_where_it_is_inferred_alone(tmp_path: Path) -> None:
    models.convolution(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    narrow = np.zeros((1, 3, 8, 7), np.float32)
    with (
        running(tmp_path, CONVOLUTION, device="openvino:CPU") as run,
        pytest.raises(FrameLostError, match=r"'x' has shape \[1, 3, 8, 7\] in this frame"),
    ):
        run.feed({"tensor": {"x": narrow}})


def test_results_are_compared_by_their_span() -> None:
    one = np.linspace(-5, 5, 1000, dtype=np.float32)
    assert is_same(one + 1e-3, one, 1e-3)
    assert not is_same(one + 1.0, one, 1e-3)
    assert not is_same(one[::-1].copy(), one, 1e-3)
    assert is_same(np.array([3, 4]), np.array([3, 5]), 1e-3)
    assert not is_same(np.array([3, 4]), np.array([3, 9]), 1e-3)
