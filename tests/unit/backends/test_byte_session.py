from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from edgert.backends.base import ByteInput, CompileRequest, Signature
from edgert.backends.byte_input import with_bytes
from edgert.backends.byte_session import ByteFedSession
from edgert.backends.registry import backend
from edgert.errors import DeviceError
from tests import models

pytest.importorskip("onnxruntime")

SHAPE = (1, 3, 4, 5)
HOW = {"x": ByteInput("NCHW", 1 / 255, (0.5, 0.25, 0.1), (0.5, 0.2, 0.4))}


def fed(model: Path, requests: int = 1) -> ByteFedSession:
    asked = CompileRequest(str(model), "CPU", requests=requests, threads=requests)
    inner = backend("onnxruntime").compile(asked)
    own = Signature(dict(inner.inputs), dict(inner.outputs))
    return ByteFedSession(inner, with_bytes(own, HOW, model.name), HOW)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_it_gives_what_the_conversion_in_the_model_gives(dtype: str, tmp_path: Path) -> None:
    model = models.doubling(tmp_path / "m.onnx", SHAPE, dtype)
    x = np.random.default_rng(0).integers(0, 256, SHAPE).astype(np.uint8)
    session = fed(model)
    assert str(session.inputs["x"]) == "u8[1,3,4,5]"
    outputs = models.arrays_for(session.outputs)
    models.infer(session, {"x": x}, outputs)
    session.close()
    with models.session_of("onnxruntime", model, bytes=HOW) as inside:
        wanted = models.arrays_for(inside.outputs)
        models.infer(inside, {"x": x}, wanted)
    assert np.allclose(outputs["y"], wanted["y"], rtol=1e-3, atol=1e-3)
    assert session.copied_bytes == outputs["y"].nbytes  # as large as the input


def test_inferences_in_flight_do_not_meet(tmp_path: Path) -> None:
    session = fed(models.doubling(tmp_path / "m.onnx", SHAPE), requests=3)
    inputs = [np.full(SHAPE, number, np.uint8) for number in range(3)]
    outputs = [models.arrays_for(session.outputs) for _ in range(3)]
    for _ in range(20):
        ended = threading.Semaphore(0)
        for x, y in zip(inputs, outputs, strict=True):
            session.start({"x": x}, y, lambda _, ended=ended: ended.release())
        assert all(ended.acquire(timeout=30) for _ in range(3))
        firsts = [y["y"][0, 0, 0, 0] for y in outputs]
        assert np.allclose(firsts, [2 * (number / 255 - 0.5) / 0.5 for number in range(3)])
    session.close()


def test_an_array_that_does_not_fit_takes_no_memory_with_it(tmp_path: Path) -> None:
    session = fed(models.doubling(tmp_path / "m.onnx", SHAPE))
    good, outputs = np.zeros(SHAPE, np.uint8), models.arrays_for(session.outputs)
    for _ in range(3):
        with pytest.raises(DeviceError, match=r"the model has u8\[1,3,4,5\] there"):
            session.start({"x": good.astype(np.float32)}, outputs, lambda _: None)
        with pytest.raises(DeviceError, match="was given nothing"):
            session.start({"x": good}, {}, lambda _: None)
    models.infer(session, {"x": good}, outputs)
    session.close()
