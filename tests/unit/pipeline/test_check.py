"""What a check returns beside the faults that the corpus shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kinds import DetectorOptions, corpus_kinds

from edgert.errors import PipelineError
from edgert.options import Options
from edgert.pipeline.check import Checked, check
from edgert.pipeline.check_stages import warn_batches, warn_shapes
from edgert.pipeline.load import load, read

Write = Callable[[str], Path]
DETECT = Path(__file__).parents[2] / "corpus" / "pipelines" / "valid" / "detect.yaml"


def checked(file: Path, *settings: str) -> Checked:
    return check(read(file, {}, settings), corpus_kinds())


def test_options_and_contracts_are_there_for_the_plan() -> None:
    result = checked(DETECT)
    result.raise_faults()
    assert result.options["detector"] == DetectorOptions(model="person", requests=2)
    assert result.contracts["prepare"].optional == {"preview"}
    assert result.contracts["prepare"].outputs == {"tensor": "tensors", "preview": "image"}
    assert result.warnings == ()


def test_faults_of_the_file_and_of_the_graph_come_together() -> None:
    result = checked(DETECT, "limits.in_flight=0", "people.threshold=2", "results.color=red")
    assert len(result.faults) == 3
    assert "people" not in result.options
    with pytest.raises(PipelineError) as caught:
        result.raise_faults()
    assert caught.value.faults == result.faults


def test_more_requests_than_frames_are_a_warning() -> None:
    result = checked(DETECT, "limits.in_flight=1")
    assert result.faults == ()
    (warning,) = result.warnings
    assert str(warning) == (
        f"{DETECT}:14:15: stage 'detector', key 'requests': 2 requests can never be busy with "
        "limits.in_flight 1. Set limits.in_flight to 2 or more, or 'requests' to 1."
    )


def test_requests_are_compared_with_the_frames_of_all_streams(write: Write) -> None:
    second = DETECT.read_text().replace("  prepare:", "  left:\n    kind: test.camera\n  prepare:")
    file = write(second.replace("camera.image", "[camera.image, left.image]"))
    assert checked(file, "limits.in_flight=1").warnings == ()
    (warning,) = checked(file, "limits.in_flight=1", "detector.requests=5").warnings
    assert warning.fault == ("5 requests can never be busy with limits.in_flight 1 and 2 streams")
    assert warning.mend == "Set limits.in_flight to 3 or more, or 'requests' to 2"


def test_more_workers_than_frames_are_a_warning(small: str, write: Write) -> None:
    file = write(small.replace("  count:", "    replicas: 3\n  count:"))
    assert checked(file).warnings == ()
    (warning,) = checked(file, "limits.in_flight=2").warnings
    assert warning.fault == "3 workers can never all be busy with 2 frames in flight"


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("0-2", "[2, 5]", "2"),
        ("p-cores", "p-cores", "p-cores"),
        ("0-11", "2,10,11", "2, 10, 11"),
        ("0-1", "2-3", ""),
        ("p-cores", "e-cores", ""),
        ("any", "0", ""),
        ("9000-9001", "9001", ""),
    ],
)
def test_inferences_on_the_same_cores_are_a_warning(
    small: str, write: Write, one: str, other: str, shared: str
) -> None:
    detector = "{kind: test.detector, model: m, inputs: {tensor: prepare.tensor}"
    stages = f"  a: {detector}, cores: '{one}'}}\n  b: {detector}, cores: {_quoted(other)}}}\n"
    warnings = checked(write(small.replace("stages:\n", f"stages:\n{stages}"))).warnings
    said = [f"{warning.place}: {warning.fault}" for warning in warnings]
    wanted = f"stage 'b', key 'cores': its inferences share cores with those of stage 'a': {shared}"
    assert said == ([wanted] if shared else [])


def _quoted(cores: str) -> str:
    return cores if cores.startswith("[") else f"'{cores}'"


def test_an_input_that_is_a_fault_already_makes_no_more_of_them(small: str, write: Write) -> None:
    result = checked(write(small.replace("camera.image", "camera")))
    assert [fault.place for fault in result.faults] == ["stage 'prepare', input 'image'"]


def test_a_stage_that_is_a_fault_already_makes_no_more_of_them(small: str, write: Write) -> None:
    text = small.replace("    kind: test.camera\n    uri: sample:bikes\n", "")
    result = checked(write(text))
    assert [fault.place for fault in result.faults] == ["stage 'camera'"]


def test_stages_of_one_worker_may_leave_their_cores_open(small: str, write: Write) -> None:
    settings = ["camera.worker=w", "camera.cores=[0]", "prepare.worker=w"]
    assert checked(write(small), *settings).faults == ()


def test_a_number_given_from_outside_is_text_where_text_is_expected(
    small: str, write: Write
) -> None:
    file = write(small.replace("sample:bikes", '"${EDGERT_INPUT}"'))
    document = load(file, {"EDGERT_INPUT": "0"})
    assert document.spec.stages["camera"].settings["uri"] == 0
    assert check(document, corpus_kinds()).options["camera"].uri == "0"
    assert checked(file, "camera.uri=007").options["camera"].uri == "007"


class Asked(Options):
    batch: Any = None
    shape: Any = None


class Batch(Options):
    max_size: int = 9


def test_batches_larger_than_what_may_be_on_its_way_are_a_warning() -> None:
    document = read(DETECT, {}, [])
    found = checked(DETECT)
    (warning,) = warn_batches(document, {"detector": Asked(batch=Batch())}, found.contracts)
    assert "a batch of 9 can never be full: with limits.in_flight 4, 4 frames" in warning.fault
    assert warning.mend == "Set limits.in_flight to 9 or more, or max_size to 4"


def test_many_shapes_are_a_warning() -> None:
    document = read(DETECT, {}, [])
    few = Asked(shape={"x": [1, [1, 2], [1, 2, 3, 4]]})
    many = Asked(shape={"x": [1, [1, 2, 3], [4, 5, 6]]})
    assert not list(warn_shapes(document, {"detector": few}))
    (warning,) = warn_shapes(document, {"detector": many})
    assert "the model is compiled for 9 shapes" in warning.fault
