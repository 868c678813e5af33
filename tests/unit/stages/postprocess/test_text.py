from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgert.errors import FrameLostError, ModelError, UserError
from edgert.models.describe import ModelDescription, TextHead
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext
from edgert.stages.harness import StageRun, opened
from edgert.stages.item_session import ITEMS
from edgert.stages.postprocess.text import TextOptions, TextPostprocess
from edgert.tensor import FrameHeader, PortSpec, TensorSpec

ALPHABET = "abc "
STEPS, MOST = 7, 4
HEAD = TextHead("ctc", {"scores": "out"}, "character", has_space=True)


class Table:
    def __init__(self, head: TextHead | None, path: str = "") -> None:
        self._head, self._path = head, path

    def describe(self, model: str, shapes: Any) -> ModelDescription:
        return ModelDescription("net", self._path, "", "onnx", {}, {}, text=self._head)


def context(folder: Path | str = ".", head: TextHead | None = HEAD, path: str = "") -> PlanContext:
    return PlanContext("text", "stage 'text'", str(folder), Table(head, path), {})


def raw_port(classes: int = 5, most: int = MOST, dtype: str = "f32") -> PortSpec:
    tensors = {"out": TensorSpec(dtype, (most, STEPS, classes))}
    return PortSpec("tensors", tensors, attributes={"model": "net", ITEMS: most})


def lines_port(most: int = MOST, *, corners: bool = True) -> PortSpec:
    tensors = {"boxes": TensorSpec("f32", (most, 4)), "corners": TensorSpec("f32", (most, 4, 2))}
    if not corners:
        del tensors["corners"]
    return PortSpec("detections", tensors, 32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    (folder / "letters.txt").write_text("\n".join(ALPHABET) + "\n")
    return folder


def opening(folder: Path, **options: Any) -> Any:
    settings = {"characters": "letters.txt", **options}
    inputs = {"raw": raw_port(), "detections": lines_port()}
    return opened(TextPostprocess, settings, inputs, context(folder))


def one_hot(rows: list[list[int]], sure: float = 0.9) -> np.ndarray:
    found = np.full((len(rows), STEPS, 5), (1 - sure) / 4, np.float32)
    for row, classes in enumerate(rows):
        found[row, np.arange(STEPS), classes] = sure
    return found


def feed(run: StageRun, scores: np.ndarray, left_out: int = 0, lines: int = -1) -> Any:
    count = len(scores) if lines < 0 else lines
    corners = np.arange(count * 8, dtype=np.float32).reshape(count, 4, 2)
    boxes = np.zeros((count, 4), np.float32)
    slot = run.inputs["detections"]
    slot.loan.set_metadata({"left_out": left_out})
    samples = {"detections": {"boxes": boxes, "corners": corners}, "raw": {"out": scores}}
    received = {
        name: run.inputs[name].fill(arrays, FrameHeader()) for name, arrays in samples.items()
    }
    loan = run.outputs["lines"].loan
    run.stage.process(received, {"lines": loan})
    return run.outputs["lines"].received()


@settings(max_examples=50)
@given(rows=st.lists(st.lists(st.integers(0, 4), min_size=STEPS, max_size=STEPS), max_size=MOST))
def test_the_likeliest_way_is_read(rows, folder) -> None:
    """Against CTC's own definition: join what is the same, then leave out the blank."""
    wanted = ["".join(ALPHABET[n - 1] for n, _ in groupby(row) if n) for row in rows]
    with opening(folder) as run:
        out = feed(run, one_hot(rows).reshape(-1, STEPS, 5))
        assert out.metadata == {"text": [text for text in wanted if text], "not_read": 0}
        kept = [n for n, text in enumerate(wanted) if text]
        assert out.tensors["scores"] == pytest.approx([0.9] * len(kept))
        assert out.tensors["corners"][:, 0, 0].tolist() == [8 * n for n in kept]


def test_lines_below_the_threshold_are_left_out_and_those_left_out_before_are_told(folder) -> None:
    scores = np.concatenate([one_hot([[1, 0, 0, 2, 0, 0, 0]], 0.9), one_hot([[3] * 7], 0.4)])
    scores[0, 3, :] = (0.1, 0.1, 0.6, 0.1, 0.1)
    with opening(folder, threshold=0.7) as run:
        out = feed(run, scores, left_out=3)
        assert out.metadata == {"text": ["ab"], "not_read": 3}
        assert out.tensors["scores"] == pytest.approx([0.75])  # of 0.9 and 0.6


def test_what_is_no_number_is_no_text(folder) -> None:
    with opening(folder) as run:
        assert feed(run, np.full((1, STEPS, 5), np.nan, np.float32)).metadata["text"] == []


def test_rows_that_are_not_those_of_the_lines_lose_the_frame(folder) -> None:
    with (
        opening(folder) as run,
        pytest.raises(FrameLostError, match="1 rows were read for 2 lines"),
    ):
        feed(run, one_hot([[1] * 7]), lines=2)


def test_the_list_of_characters_is_in_the_models_own_file(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="needs the extra 'onnxruntime'")
    model = onnx.ModelProto()
    onnx.helper.set_model_props(model, {"other": "x", "character": "a\nb\nc"})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    inputs = {"raw": raw_port(), "detections": lines_port()}
    where = context(tmp_path, path=str(tmp_path / "m.onnx"))
    with opened(TextPostprocess, {}, inputs, where) as run:
        assert feed(run, one_hot([[1, 4, 2, 0, 0, 0, 0]])).metadata["text"] == ["a b"]


def test_another_number_of_characters_is_refused(folder) -> None:
    inputs = {"raw": raw_port(9), "detections": lines_port()}
    opens = opened(TextPostprocess, {"characters": "letters.txt"}, inputs, context(folder))
    with pytest.raises(ModelError) as caught, opens:
        pass
    assert "there are 5 characters with the blank, and the model tells 9 apart" in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "head", "options", "said"),
    [
        ({}, None, {}, "nothing is known of how the model's outputs become text. Give `family:`"),
        ({}, None, {"family": "ctc"}, "the characters of the model are not known"),
        ({}, HEAD, {"characters": "none.txt"}, "none.txt: No such file"),
        ({"raw": raw_port(dtype="u8")}, HEAD, {}, "output 'out' is u8[4,7,5], and f32 of rows"),
        ({"detections": lines_port(corners=False)}, HEAD, {}, "what arrives has no corners"),
        ({"detections": lines_port(3)}, HEAD, {}, "up to 3 detections arrive, and up to 4 rows"),
    ],
)
def test_what_does_not_fit_is_refused(inputs, head, options, said) -> None:
    ports = {"raw": raw_port(), "detections": lines_port(), **inputs}
    with pytest.raises(UserError) as caught:
        TextPostprocess.plan(read_as(TextOptions, options), ports, context(".", head))
    assert said in str(caught.value)
