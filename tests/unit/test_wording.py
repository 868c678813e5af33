"""How counts are said."""

import pytest

from edgert.wording import counted


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 frames"), (1, "1 frame"), (2, "2 frames"), (1_000, "1000 frames")]
)
def test_one_of_a_kind_has_no_s(number: int, said: str) -> None:
    assert counted(number, "frame") == said
