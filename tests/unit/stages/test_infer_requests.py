from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.models.reader import Models
from edgert.stages.base import PlanContext
from edgert.stages.infer_requests import MOST, planned_requests


def context(threads: int, in_flight: int = 4, streams: int = 1) -> PlanContext:
    names = tuple(f"s{number}" for number in range(streams))
    folder = Path("/nowhere")
    return PlanContext("d", "stage 'd'", str(folder), Models(folder), {}, names, in_flight, threads)


@pytest.mark.parametrize(
    ("devices", "threads", "in_flight", "streams", "number"),
    [
        (["CPU"], 1, 4, 1, 2),
        (["CPU"], 2, 4, 1, 3),
        (["onnxruntime:cpu"], 2, 4, 1, 3),
        (["NPU"], 8, 4, 1, 2),
        (["openvino:HETERO:NPU,CPU"], 2, 4, 1, 3),
        (["onnxruntime:OpenVINO.CPU"], 2, 4, 1, 3),
        (["onnxruntime:OpenVINO.NPU"], 2, 4, 1, 2),
        (["NPU", "GPU", "CPU"], 2, 4, 1, 3),  # the device that needs most decides
        (["CPU"], 8, 4, 1, 4),  # more can never be busy
        (["CPU"], 8, 4, 2, 8),
        (["CPU"], 2, 1, 1, 1),
        (["CPU"], 200, 100, 4, MOST),
    ],
)
def test_auto_is_one_more_than_is_computed_at_once(
    devices: list[str], threads: int, in_flight: int, streams: int, number: int
) -> None:
    assert planned_requests("auto", devices, context(threads, in_flight, streams)) == number


@given(st.integers(1, 256), st.integers(1, 64), st.integers(0, 8))
def test_auto_never_exceeds_the_frames_in_flight(
    threads: int, in_flight: int, streams: int
) -> None:
    chosen = planned_requests("auto", ["NPU", "CPU"], context(threads, in_flight, streams))
    assert 1 <= chosen <= min(MOST, in_flight * max(1, streams))


def test_a_number_is_taken_as_it_is() -> None:
    assert planned_requests(7, ["CPU"], context(1, in_flight=2)) == 7
