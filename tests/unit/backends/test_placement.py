import pytest

from edgert.backends.placement import Placement, landed
from edgert.errors import DeviceError


@pytest.mark.parametrize(
    ("found", "where"),
    [
        (None, "unknown"),
        (Placement(5, 5), "npu"),
        (Placement(4, 5), "npu,CPU"),
    ],
)
def test_where_a_model_runs(found: Placement | None, where: str) -> None:
    assert landed(found, "npu", "place", whole=False) == where


@pytest.mark.parametrize(
    ("found", "whole", "said"),
    [
        (
            Placement(0, 5, "nodes"),
            False,
            "place: it took none of the model's 5 nodes. "
            "Is the model made for it (quantised, compiled).",
        ),
        (
            Placement(4, 5),
            True,
            "place: it took only 4 of 5 operators of the model. "
            "Write 'fallback: allow' to let the CPU compute the rest.",
        ),
    ],
)
def test_what_is_refused(found: Placement, whole: bool, said: str) -> None:  # noqa: FBT001
    with pytest.raises(DeviceError) as caught:
        landed(found, "npu", "place", whole=whole)
    assert str(caught.value) == said
