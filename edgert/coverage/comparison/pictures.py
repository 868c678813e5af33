"""Pictures through the stages that a pipeline has. Runs in a child: the files are strangers'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edgert.coverage import values
from edgert.coverage.comparison.inputs import Fed
from edgert.errors import FrameLostError
from edgert.models.reader import Models
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext
from edgert.stages.harness import StageRun, opened
from edgert.stages.infer_options import InferOptions
from edgert.stages.preprocess.image import ImagePreprocess
from edgert.stages.source.files import find_images
from edgert.stages.source.images import ImagesSource


def prepare(  # noqa: PLR0913  what makes inputs of pictures
    path: str,
    drawn: str,
    folder: str,
    model: str,
    shapes: dict[str, list[int]],
    given: dict[str, Any],
    most: int,
) -> dict[str, Any]:
    """Write the inputs that pictures come to.

    Args:
        path: A directory of images, or one.
        drawn: File of seeded inputs: those that take no picture stay so.
        folder: For the files.
        model: As ``models.describe`` takes it.
        shapes: Sizes of inputs that it leaves open.
        given: Options of ``preprocess.image``.
        most: How many pictures at most.

    Raises:
        UserError: There are none, or the model does not say how it takes them.
    """
    models = Models(Path.cwd())
    images = PlanContext("images", "--inputs", "/", models, {})
    stages = {"model": read_as(InferOptions, {"model": model, "shape": shapes})}
    context = PlanContext("prepare", "--preprocess", "/", models, stages)
    options = {"for": "model", "convert": "here", **given}
    samples: list[Fed] = []
    lost: list[str] = []
    with opened(ImagesSource, {"uri": path}, {}, images) as source:
        port = source.stage.context.outputs["image"]
        files = int(port.attributes["files"])
        tried = min(files, most)
        with opened(ImagePreprocess, options, {"image": port}, context) as stage:
            rest = values.load(Path(drawn))
            for number, file in enumerate(find_images(Path(path), "--inputs", recursive=False)):
                if number == tried:
                    break
                try:
                    target = Path(folder, f"sample-{number}.npz")
                    samples.append(_write(source, stage, rest, file.name, target))
                except FrameLostError as error:
                    lost.append(str(error))
    return {
        "samples": msgspec.to_builtins(samples),
        "lost": lost,
        "files": files,
        "tried": tried,
    }


def _write(source: StageRun, stage: StageRun, rest: values.Values, name: str, target: Path) -> Fed:
    grabbed = source.grab()
    if grabbed is None:
        raise FrameLostError("it went away while it was read")
    image = grabbed["image"]
    arrays = {key: np.array(array) for key, array in image.tensors.items()}
    prepared = stage.feed({"image": arrays}, image.header)["tensor"]
    tensors = {key: np.array(array) for key, array in prepared.tensors.items()}
    values.save(target, {**rest, **tensors})
    header = prepared.header
    kept = {"width": header.width, "height": header.height, "transform": list(header.transform)}
    return Fed(name, str(target), kept)
