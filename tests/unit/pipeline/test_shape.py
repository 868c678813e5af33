"""What the schema of a model says of a place in a file."""

from __future__ import annotations

from pydantic import BaseModel

from edgert.pipeline.shape import properties_of, shape_at


class Inner(BaseModel):
    frames: int = 1
    seconds: float = 1


class Outer(BaseModel):
    always: Inner = Inner()
    perhaps: Inner | None = None


def test_a_mapping_that_may_be_left_out_has_its_keys_all_the_same() -> None:
    for key in ("always", "perhaps"):
        assert properties_of(shape_at(Outer, (key,))) == ["frames", "seconds"], key
    assert properties_of(shape_at(Outer, ("perhaps", "frames"))) == []
