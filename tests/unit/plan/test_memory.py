from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edgert import Pipeline
from edgert.device.memory import Available
from edgert.errors import ResourceError
from edgert.plan import memory
from edgert.plan.memory import MB, RUNTIME_BYTES, WORKER_BYTES, ZYGOTE_BYTES, Need, need
from tests.process.runs import load
from tests.saved_models import doubling_saved_model, weighing_paddle
from tests.unit.stages.source.media import make_video


def test_processes_count_beside_rings(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 1},
        "out": {"kind": "Write", "inputs": {"n": "src.n"}, "path": str(tmp_path / "out.txt")},
    }
    plan = load(tmp_path, stages).plan
    found = need(plan)
    assert found == Need(plan.shared_bytes, ZYGOTE_BYTES + 2 * WORKER_BYTES, 0)
    infers = msgspec.structs.replace(plan, requested={"out": ("openvino:CPU",)})
    assert need(infers).processes == found.processes + RUNTIME_BYTES
    emulates = msgspec.structs.replace(plan, requested={"out": ("emulated:npu",)})
    assert need(emulates).processes == found.processes


def test_the_weights_of_each_model_count_once(tmp_path: Path, yolox_onnx: Path) -> None:
    shipped = Path(__file__).parents[3] / "pipelines" / "detect-yolox.yaml"
    video = make_video(tmp_path / "a.mkv")
    settings = [f"camera.uri={video}", f"detector.model={yolox_onnx}"]
    plan = Pipeline.load(shipped, settings=settings).plan
    assert need(plan).weights == yolox_onnx.stat().st_size


def test_all_files_of_a_model_are_its_weights(tmp_path: Path) -> None:
    paddle = weighing_paddle(tmp_path / "net.pdmodel")
    both = paddle.stat().st_size + paddle.with_suffix(".pdiparams").stat().st_size
    assert memory._bytes_of(str(paddle)) == both
    folder = doubling_saved_model(tmp_path / "net")
    assert memory._bytes_of(str(folder)) == (folder / "saved_model.pb").stat().st_size
    assert memory._bytes_of(str(tmp_path / "gone.onnx")) == 0


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (Need(9, 1, 1), "limits.in_flight"),
        (Need(1, 9, 1), "`worker:`"),
        (Need(1, 1, 9), "smaller `model`"),
    ],
)
def test_the_mend_is_for_what_needs_the_most(needed: Need, said: str) -> None:
    assert said in needed.mend
    assert needed.total == 11


def test_too_little_is_told_with_every_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 1},
        "out": {"kind": "Write", "inputs": {"n": "src.n"}, "path": str(tmp_path / "out.txt")},
    }
    pipeline = load(tmp_path, stages)
    monkeypatch.setattr(
        "edgert.device.memory.available_bytes", lambda: Available(20 * MB, "a test")
    )
    with pytest.raises(ResourceError) as caught:
        pipeline.run()
    said = str(caught.value)
    assert said.startswith(f"pipeline '{pipeline.plan.name}' (rings ")
    assert "2 workers 26.7 MiB): " in said
    assert "19.1 MiB can be had (a test). Let stages share a process" in said
