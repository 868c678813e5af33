"""What every backend must do; new ones are added to BACKENDS."""

import mmap
import os
import sys
import threading
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from edgert.backends.base import CompileRequest
from edgert.backends.registry import backend, is_installed
from edgert.errors import DeviceError, FrameLostError, ModelError, RunError
from tests import models


def _marked(name: str) -> object:
    needs = models.NEEDS.get(name)
    absent = not is_installed(name) or (needs is not None and find_spec(needs) is None)
    missing = pytest.mark.skipif(absent, reason=f"{needs or name} is not installed")
    return pytest.param(name, marks=missing)


REAL = [_marked(name) for name in ("openvino", "onnxruntime", "tflite")]
BACKENDS = [*REAL, _marked("emulated")]
every = pytest.mark.parametrize("name", BACKENDS)
every_real = pytest.mark.parametrize("name", REAL)
in_flight = pytest.mark.parametrize("requests", [1, 3])


@pytest.fixture
def doubling(name: str, tmp_path: Path) -> Path:
    return models.of(name).doubling(models.file(name, tmp_path, "doubling"))


@every
def test_devices_are_listed_and_the_version_names_the_runtime(name: str) -> None:
    found = backend(name)
    assert found.name == name
    assert found.version().startswith(f"{name} ")
    assert found.devices()


@every
@in_flight
def test_outputs_are_filled_in_place(name: str, requests: int, tmp_path: Path) -> None:
    model = models.of(name).two_in_two_out(models.file(name, tmp_path))
    with models.session_of(name, model, requests=requests, threads=2) as session:
        inputs = {"a": np.full(4, 3, np.float32), "b": np.full(4, 8, np.float32)}
        outputs = models.arrays_for(session.outputs)
        models.infer(session, inputs, outputs)
        assert session.requests == requests
        assert session.copied_bytes == models.moved(name, session)
        assert np.abs(outputs["half"]).sum() > 0
        if name != "emulated":
            assert outputs["total"].tolist() == [11] * 4
            assert outputs["half"].tolist() == [4] * 4


@every
def test_the_signature_is_in_the_models_order(name: str, tmp_path: Path) -> None:
    model = models.of(name).two_in_two_out(models.file(name, tmp_path))
    signature = backend(name).signature(str(model), {})
    assert list(signature.inputs) == ["b", "a"]
    assert list(signature.outputs) == ["total", "half"]
    assert {str(spec) for spec in signature.inputs.values()} == {"f32[4]"}


@every_real
@in_flight
def test_inputs_are_read_where_they_lie_and_may_be_read_only(
    name: str, requests: int, doubling: Path
) -> None:
    fd = os.memfd_create("inputs")
    os.ftruncate(fd, mmap.PAGESIZE)
    reader_fd = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    written = np.frombuffer(mmap.mmap(fd, mmap.PAGESIZE), np.float32, 6)
    read = mmap.mmap(reader_fd, mmap.PAGESIZE, prot=mmap.PROT_READ)
    seen = np.frombuffer(read, np.float32, 6).reshape(2, 3)
    assert not seen.flags.writeable
    with models.session_of(name, doubling, requests=requests) as session:
        outputs = models.arrays_for(session.outputs)
        for number in (1.0, 2.0, 5.0):
            written[:] = number
            models.infer(session, {"x": seen}, outputs)
            assert (outputs["y"] == 2 * number).all()
        assert session.copied_bytes == models.moved(name, session, 3)
    os.close(fd)
    os.close(reader_fd)


@every_real
@in_flight
def test_each_inference_uses_the_memory_it_was_given(
    name: str, requests: int, doubling: Path
) -> None:
    with models.session_of(name, doubling, requests=requests) as session:
        inputs = [np.full((2, 3), n, np.float32) for n in range(3)]
        outputs = [np.zeros((2, 3), np.float32) for _ in range(4)]
        for turn in range(12):
            given, target = inputs[turn % 3], outputs[turn % 4]
            target[:] = -1
            models.infer(session, {"x": given}, {"y": target})
            assert (target == 2 * (turn % 3)).all()


@every
@in_flight
def test_done_is_called_once_for_each_inference(name: str, requests: int, doubling: Path) -> None:
    calls: Counter[int] = Counter()
    room = threading.Semaphore(requests)
    with models.session_of(name, doubling, requests=requests, threads=2) as session:
        inputs = [models.arrays_for(session.inputs) for _ in range(requests)]
        outputs = [models.arrays_for(session.outputs) for _ in range(requests)]
        free = list(range(requests))
        for turn in range(60):
            assert room.acquire(timeout=30)
            slot = free.pop()

            def done(error: BaseException | None, turn: int = turn, slot: int = slot) -> None:
                assert error is None
                calls[turn] += 1
                free.append(slot)
                room.release()

            session.start(inputs[slot], outputs[slot], done)
    assert calls == dict.fromkeys(range(60), 1)


@every
@in_flight
def test_close_waits_for_what_is_in_flight(name: str, requests: int, doubling: Path) -> None:
    ended: list[BaseException | None] = []
    with models.session_of(name, doubling, requests=requests) as session:
        memory = [
            (models.arrays_for(session.inputs), models.arrays_for(session.outputs))
            for _ in range(requests)
        ]
        for inputs, outputs in memory:
            session.start(inputs, outputs, ended.append)
    assert ended == [None] * requests


@every
@in_flight
def test_no_reference_to_an_input_is_kept(name: str, requests: int, doubling: Path) -> None:
    with models.session_of(name, doubling, requests=requests) as session:
        inputs = models.arrays_for(session.inputs)
        outputs = models.arrays_for(session.outputs)
        array = inputs["x"]
        before = sys.getrefcount(array)
        for _ in range(5):
            models.infer(session, inputs, outputs)
            assert sys.getrefcount(array) == before


MISFITS = {
    "another type": np.zeros((2, 3), np.float64),
    "another shape": np.zeros((3, 2), np.float32),
    "not contiguous": np.zeros((2, 6), np.float32)[:, ::2],
    "missing": None,
}


@every
@pytest.mark.parametrize("why", MISFITS)
@pytest.mark.parametrize("side", ["x", "y"])
def test_an_array_that_does_not_fit_is_refused(
    name: str, why: str, side: str, doubling: Path
) -> None:
    arrays = {"x": np.zeros((2, 3), np.float32), "y": np.zeros((2, 3), np.float32)}
    good = dict(arrays)
    arrays[side] = MISFITS[why]
    with models.session_of(name, doubling) as session:
        with pytest.raises(DeviceError, match=rf"tensor '{side}': .*f32\[2,3\]"):
            session.start({"x": arrays["x"]}, {"y": arrays["y"]}, pytest.fail)
        models.infer(session, {"x": good["x"]}, {"y": good["y"]})


@every
def test_an_unknown_option_is_refused(name: str, doubling: Path) -> None:
    with (
        pytest.raises(DeviceError, match=r"there is no option 'no_such'\. Its options: \w+"),
        models.session_of(name, doubling, options={"no_such": 1}),
    ):
        pass


@every
def test_a_device_that_is_not_here_is_refused_with_those_that_are(
    name: str, doubling: Path
) -> None:
    with (
        pytest.raises(DeviceError, match=backend(name).devices()[0]),
        models.session_of(name, doubling, device="FPGA"),
    ):
        pass


@every
def test_the_report_says_where_it_runs(name: str, doubling: Path) -> None:
    with models.session_of(name, doubling) as session:
        report = session.device
    assert report.requested == report.actual
    assert report.actual == ("emulated:NPU" if name == "emulated" else f"{name}:CPU")
    assert report.precision == ("replayed" if name == "emulated" else "f32")
    assert report.emulated == (name == "emulated")
    assert report.runtime.startswith(backend(name).version())


@every
def test_open_sizes_are_fixed_by_shapes(name: str, tmp_path: Path) -> None:
    model = models.of(name).convolution(models.file(name, tmp_path), ["n", 3, "h", "w"])
    signature = backend(name).signature(str(model), {"x": [1, 3, 8, 10]})
    assert str(signature.inputs["x"]) == "f32[1,3,8,10]"
    assert str(signature.outputs["y"]) == "f32[1,320]"
    with models.session_of(name, model, shapes={"x": [1, 3, 8, 10]}) as session:
        assert session.outputs == signature.outputs
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"x": np.ones((1, 3, 8, 10), np.float32)}, outputs)
        assert np.abs(outputs["y"]).sum() > 0
        assert session.copied_bytes == models.moved(name, session)


@every
def test_sizes_that_the_model_declares_can_be_changed(name: str, tmp_path: Path) -> None:
    model = models.of(name).convolution(models.file(name, tmp_path), [10, 3, 32, 32])
    with models.session_of(name, model, shapes={"x": [1, 3, 4, 4]}) as session:
        assert str(session.inputs["x"]) == "f32[1,3,4,4]"
        assert str(session.outputs["y"]) == "f32[1,64]"


@every
def test_open_sizes_show_in_the_signature_and_cannot_be_compiled(name: str, tmp_path: Path) -> None:
    model = models.of(name).convolution(models.file(name, tmp_path), ["n", 3, "h", 8])
    assert backend(name).signature(str(model), {}).inputs["x"].shape == (None, 3, None, 8)
    with (
        pytest.raises(ModelError, match=r"shape: \{x: \[N, 3, N, 8\]\}"),
        models.session_of(name, model),
    ):
        pass


@every
@pytest.mark.parametrize("shapes", [{"z": [1, 3, 8, 8]}, {"x": [1, 3]}])
def test_shapes_that_do_not_fit_are_refused(
    name: str, shapes: dict[str, list[int]], tmp_path: Path
) -> None:
    model = models.of(name).convolution(models.file(name, tmp_path), ["n", 3, "h", "w"])
    with pytest.raises(ModelError) as refused:
        backend(name).signature(str(model), shapes)
    assert refused.value.faults[0].mend


@every_real
@in_flight
def test_an_output_of_unknown_size_is_copied_and_counted(
    name: str, requests: int, tmp_path: Path
) -> None:
    model = models.of(name).places_of_ones(models.file(name, tmp_path))
    x = np.array([0, 1, 0, 0, 1, 1], np.float32)
    with models.session_of(name, model, requests=requests) as session:
        assert session.outputs["y"].shape == (1, None)
        room: list[np.ndarray] = []

        def fit(shape: tuple[int, ...]) -> np.ndarray:
            room.append(np.empty(shape, np.int64))
            return room[-1]

        models.infer(session, {"x": x}, {"y": fit})
        assert room[0].tolist() == [[1, 4, 5]]
        assert session.copied_bytes >= room[0].nbytes
        exact = np.zeros((1, 3), np.int64)
        models.infer(session, {"x": x}, {"y": exact})
        assert exact.tolist() == [[1, 4, 5]]
        x[0] = 1
        with pytest.raises(FrameLostError, match=r"\[1, 4\]"):
            models.infer(session, {"x": x}, {"y": exact})


@every_real
@in_flight
def test_an_inference_that_fails_is_told_once_and_the_next_one_works(
    name: str, requests: int, tmp_path: Path
) -> None:
    model = models.of(name).fails_on_demand(models.file(name, tmp_path))
    x, y = np.ones((2, 3), np.float32), np.zeros((), np.float32)
    with models.session_of(name, model, requests=requests) as session:
        for _ in range(2 * requests):
            with pytest.raises(RunError, match="an inference failed"):
                models.infer(session, {"x": x, "to": np.array([4, 2])}, {"y": y})
        models.infer(session, {"x": x, "to": np.array([3, 2])}, {"y": y})
        assert y == 6


@every_real
def test_a_failure_in_flight_is_told_before_close_returns(name: str, tmp_path: Path) -> None:
    model = models.of(name).fails_on_demand(models.file(name, tmp_path))
    x, y = np.ones((2, 3), np.float32), np.zeros((), np.float32)
    ended: list[BaseException | None] = []
    with models.session_of(name, model, requests=2) as session:
        session.start({"x": x, "to": np.array([4, 2])}, {"y": y}, ended.append)
    assert [type(error) for error in ended] == [RunError]


@every
@pytest.mark.parametrize("content", [b"", b"hello", b"\x08\x08\x12" + bytes(200)])
def test_a_file_that_is_no_model_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    broken = models.file(name, tmp_path, "broken")
    broken.write_bytes(content)
    with pytest.raises(ModelError, match=r"broken\.") as refused:
        backend(name).signature(str(broken), {})
    assert refused.value.faults[0].mend


@every
def test_a_truncated_model_is_refused(name: str, tmp_path: Path) -> None:
    model = models.of(name).convolution(models.file(name, tmp_path), [1, 3, 8, 8])
    model.write_bytes(model.read_bytes()[:300])
    with pytest.raises(ModelError, match=r"m\.") as refused:
        backend(name).signature(str(model), {})
    assert refused.value.faults[0].mend


@every
def test_a_missing_model_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no file"):
        backend(name).compile(
            CompileRequest(str(models.file(name, tmp_path)), backend(name).devices()[0])
        )


@every
def test_an_element_type_that_no_slot_carries_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="string"):
        backend(name).signature(str(models.of(name).strings(models.file(name, tmp_path))), {})


@every_real
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i32", "i64", "u8"])
def test_element_types(name: str, dtype: str, tmp_path: Path) -> None:
    model = models.of(name).doubling(models.file(name, tmp_path), (2, 2), dtype)
    with models.session_of(name, model) as session:
        assert session.inputs["x"].dtype == session.outputs["y"].dtype == dtype
        inputs, outputs = models.arrays_for(session.inputs), models.arrays_for(session.outputs)
        inputs["x"][:] = 21
        models.infer(session, inputs, outputs)
        assert (outputs["y"] == 42).all()


@pytest.mark.skipif(
    not (is_installed("openvino") and is_installed("onnxruntime")), reason="needs both runtimes"
)
def test_runtimes_agree_on_a_detector(yolox_onnx: Path) -> None:
    image = np.random.default_rng(1).integers(0, 256, (1, 3, 416, 416)).astype(np.float32)
    found = {}
    for name in ("openvino", "onnxruntime"):
        with models.session_of(name, yolox_onnx, threads=2) as session:
            outputs = models.arrays_for(session.outputs)
            models.infer(session, {"images": image}, outputs)
            found[name] = (session.inputs, session.outputs, outputs["output"])
    (inputs, specs, ours), (inputs_2, specs_2, theirs) = found.values()
    assert inputs == inputs_2
    assert specs == specs_2
    assert np.abs(ours).max() > 0.1
    np.testing.assert_allclose(ours, theirs, atol=1e-2)
