"""An error says place, fault, mend; its class says who must act."""

from __future__ import annotations

import pickle

import pytest

from edgert import errors
from edgert.errors import EdgertError, Fault, PipelineError, RunError, UserError


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault("stage 'a'", "is wrong"), "stage 'a': is wrong."),
        (Fault("stage 'a'", "is wrong.", "Mend it."), "stage 'a': is wrong. Mend it."),
        (Fault("stage 'a'", "is wrong", "", "f.yaml"), "f.yaml: stage 'a': is wrong."),
        (Fault("a", "is wrong", "Mend it", "f.yaml", 3, 7), "f.yaml:3:7: a: is wrong. Mend it."),
        (Fault("a", "is wrong", "", "", 3, 7), "a: is wrong."),
    ],
)
def test_a_fault_leaves_out_what_is_not_known(fault, said):
    assert str(fault) == said


def test_an_error_reads_as_its_fault():
    assert str(UserError("model 'x'", "is missing", "Pull it")) == "model 'x': is missing. Pull it."


def test_a_pipeline_error_tells_every_fault_in_its_order():
    faults = [Fault("b", "two", "", "f.yaml", 9, 1), Fault("a", "one", "", "f.yaml", 2, 3)]
    error = PipelineError(faults)
    assert error.faults == tuple(faults)
    assert str(error) == "f.yaml:9:1: b: two.\nf.yaml:2:3: a: one."


CLASSES = [
    found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, EdgertError) and found is not EdgertError
]


@pytest.mark.parametrize("error", CLASSES)
def test_the_class_says_who_must_act(error):
    assert error.exit_code == (2 if issubclass(error, UserError) else 1)
    assert issubclass(error, UserError) != issubclass(error, RunError)


@pytest.mark.parametrize("error", CLASSES)
def test_every_class_stands_in_the_drawing(error):
    assert error.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("error", [found for found in CLASSES if found is not PipelineError])
def test_an_error_survives_a_process_boundary(error):
    sent = error("place", "fault", "mend")
    received = pickle.loads(pickle.dumps(sent))  # noqa: S301  our own bytes
    assert type(received) is error
    assert received.faults == sent.faults


def test_what_a_stage_says_of_one_frame_is_no_error_of_a_run():
    assert not issubclass(errors.FrameLostError, EdgertError)
    assert not issubclass(errors.FrameFiltered, EdgertError)
