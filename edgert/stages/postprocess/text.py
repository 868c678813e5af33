"""``postprocess.text``: what a model read in crops of lines becomes text with its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from edgert.errors import FrameLostError, ModelError, UserError
from edgert.models.describe import TextHead
from edgert.models.onnx_metadata import read_metadata
from edgert.options import option
from edgert.paths import below
from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, Stage, StageOptions
from edgert.stages.item_session import most_items
from edgert.stages.postprocess.described import choose_tensors, describe, read_lines
from edgert.stages.preprocess.crops import CORNERS, LEFT_OUT
from edgert.stages.shape_ranges import refuse_ranges
from edgert.tensor import PortSpec, TensorSpec
from edgert.transport.address import Array

BLANK = 0  # CTC's own symbol stands before the characters
# Of UTF-8 at most, for a step of the model; and for a line and a frame of msgpack around it.
_CHARACTER_BYTES, _LINE_BYTES, _FRAME_BYTES = 4, 8, 64


class TextOptions(StageOptions):
    """Options of ``postprocess.text``; what is left out comes from the model's metadata."""

    threshold: float = option(
        default=0.5,
        ge=0,
        le=1,
        description="Lowest score of a line; lines without a character never pass.",
    )
    model: str | None = option(
        default=None, description="Model whose metadata is used; else the one whose outputs arrive."
    )
    family: Literal["ctc"] | None = option(
        default=None, description="How the outputs are to be read."
    )
    tensors: dict[str, str] | None = option(
        default=None, description="Role -> name of the output: `scores`."
    )
    characters: str | None = option(
        default=None,
        description="Text file with one character on each line, in the order of the model's "
        "outputs behind the blank; else the list in the model's own file.",
    )


class TextPostprocess(Stage):
    """Turn what a model read in crops into lines of text.

    ``detections`` are those of ``preprocess.crops``: one for each row that was read.
    """

    inputs: ClassVar[Mapping[str, str]] = {"raw": "tensors", "detections": "detections"}
    outputs: ClassVar[Mapping[str, str]] = {"lines": "lines"}
    options: ClassVar[type[StageOptions]] = TextOptions
    is_stateless = True
    live_options = frozenset({"threshold"})
    settings: TextOptions

    @classmethod
    def plan(cls, options: TextOptions, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        """Say how many lines of how many characters there may be."""
        port, where = inputs["raw"], f"{context.place}, input 'raw'"
        refuse_ranges(port, context.place)
        described = describe(options.model, port, context)
        known = described.text if described else None
        if known is None and options.family is None:
            fault = "nothing is known of how the model's outputs become text"
            raise UserError(where, fault, "Give `family:`")
        fields: dict[str, Any] = msgspec.structs.asdict(known) if known else {"family": "ctc"}
        fields["tensors"] = choose_tensors(
            fields.get("tensors") or {}, options.tensors, ("scores",), port, where
        )
        head = TextHead(**fields)
        if not head.characters and options.characters is None:
            fault = "the characters of the model are not known"
            raise UserError(where, fault, "Give `characters:`, a file with one on each line")
        if options.characters is not None:
            read_lines(options.characters, "characters", context)
        steps = _steps(head, port.tensors[head.tensors["scores"]], where)
        _refuse_strangers(port, inputs["detections"], context.place)
        most = most_items(port)
        path = described.path if described else ""
        attributes = {"head": msgspec.to_builtins(head), "model_path": path}
        room = _FRAME_BYTES + most * (_LINE_BYTES + steps * _CHARACTER_BYTES)
        tensors = {
            "corners": TensorSpec("f32", (most, 4, 2)),
            "scores": TensorSpec("f32", (most,)),
        }
        return {"lines": PortSpec("lines", tensors, room, attributes)}

    def open(self) -> None:
        """Read the list of characters."""
        attributes = self.context.outputs["lines"].attributes
        self._head = msgspec.convert(attributes["head"], TextHead)
        self._tensor = self._head.tensors["scores"]
        classes = self.context.inputs["raw"].tensors[self._tensor].shape[-1]
        self._characters = self._read_characters(attributes["model_path"])
        if len(self._characters) != classes:
            fault = f"there are {len(self._characters)} characters with the blank"
            raise ModelError(
                f"{self.context.place}, characters",
                f"{fault}, and the model tells {classes} apart",
                "Give the model's own list by `characters:`",
            )

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write the lines of one frame."""
        found, loan = inputs["detections"], outputs["lines"]
        tensors = found.tensors
        scores = inputs["raw"].tensors[self._tensor]
        if len(scores) != len(tensors["boxes"]):
            raise FrameLostError(f"{len(scores)} rows were read for {len(tensors['boxes'])} lines")
        texts, sure = self._read(scores)
        passing = [n for n, text in enumerate(texts) if text and sure[n] >= self.settings.threshold]
        count = len(passing)
        loan.tensor("corners", (count, 4, 2))[...] = tensors[CORNERS][passing]
        loan.tensor("scores", (count,))[...] = sure[passing]
        loan.set_header(found.header)
        left_out = found.metadata.get(LEFT_OUT, 0)
        loan.set_metadata({"text": [texts[n] for n in passing], "not_read": left_out})

    def _read(self, scores: Array) -> tuple[list[str], Array]:
        """Return the text and the score of each row [N, steps, characters], the likeliest way.

        What is the same at neighbouring steps is one character, unless a blank is between.
        """
        best = scores.argmax(2)
        sure = np.take_along_axis(scores, best[..., None], 2)[..., 0]
        is_new = best != BLANK
        is_new[:, 1:] &= best[:, 1:] != best[:, :-1]
        characters = self._characters
        texts = [
            "".join([characters[n] for n in row[new].tolist()])
            for row, new in zip(best, is_new, strict=True)
        ]
        counts = np.maximum(is_new.sum(1), 1)
        return texts, (sure * is_new).sum(1) / counts

    def _read_characters(self, path: str) -> list[str]:
        """Return what each class of the model stands for, the blank first."""
        if self.settings.characters is not None:
            given = below(self.context.folder, self.settings.characters).read_text("utf-8")
            return ["", *given.removesuffix("\n").split("\n")]
        if not path:
            raise ModelError(self.context.place, "the model is not here yet", "Pull it")
        listed = read_metadata(path).get(self._head.characters)
        if listed is None:
            fault = f"the file has no list of characters '{self._head.characters}'"
            raise ModelError(f"model {Path(path).name!r}", fault, "Give `characters:`")
        return ["", *listed.removesuffix("\n").split("\n"), *([" "] * self._head.has_space)]


def _steps(head: TextHead, spec: TensorSpec, where: str) -> int:
    """Return how many characters a row can have.

    Raises:
        ModelError: The output is not one of rows, steps and characters.
    """
    if spec.dtype != "f32" or len(spec.shape) != 3:
        name = head.tensors["scores"]
        fault = f"output {name!r} is {spec}, and f32 of rows, steps and characters is needed"
        raise ModelError(where, fault, "Give the right `tensors:`")
    return spec.shape[1] or 0


def _refuse_strangers(raw: PortSpec, detections: PortSpec, place: str) -> None:
    """Refuse rows that are not those of the detections.

    Raises:
        UserError: They are not.
    """
    mend = "Read 'detections' of the preprocess.crops stage whose tensor the model reads"
    if CORNERS not in detections.tensors:
        raise UserError(f"{place}, input 'detections'", "what arrives has no corners", mend)
    most = detections.tensors["boxes"].shape[0]
    if most_items(raw) != most:
        fault = f"up to {most} detections arrive, and up to {most_items(raw)} rows that were read"
        raise UserError(f"{place}, inputs", fault, mend)
